"""Labels: shown as original words, random words or synonyms, for three retrieval strategies."""

from __future__ import annotations

from collections.abc import Iterator

from zicl.lab.study.base import Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import RETRIEVALS, WORDS, grid_method, method_name, method_style, method_title
from zicl.lab.study.outcome import SectionOutcome, StudyOutcome, minus, points

_RETRIEVALS = ("nearest", "diverse", "physical")
_GRID = [(retrieval, words) for retrieval in _RETRIEVALS for words in WORDS]


def _parts(_: StudyOptions, __: StudySetup) -> list[StudyPart]:
    return [StudyPart("words", {method_name(*each): grid_method(*each) for each in _GRID})]


def _figures(_: StudyOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def series(section: SectionOutcome) -> Iterator[Series]:
        for retrieval, words in _GRID:
            groups = {RETRIEVALS[retrieval]: {method_name(retrieval, words): 1}}
            yield section.bars(method_title(retrieval, words), method_style(retrieval, words), groups)

    return [StudyFigure("labels", "What labels are shown as", "", ACCURACY, outcome.panels(series))]


def _findings(_: StudyOptions, section: SectionOutcome) -> Iterator[str]:
    gaps = {name: {method_name(name, "synonyms"): 1.0, method_name(name, "original"): -1.0} for name in _RETRIEVALS}
    each = [f"{points(section.compare(gap))} for {RETRIEVALS[name].lower()}" for name, gap in gaps.items()]
    size = section.size([method_name(*each) for each in _GRID])
    yield f"synonyms minus original labels is {', '.join(each)} ({size})."
    mean = {words: {method_name(name, words): 1 / len(_RETRIEVALS) for name in _RETRIEVALS} for words in WORDS}
    random = section.compare(minus(mean["random-words"], mean["original"]))
    meaning = section.compare(minus(mean["synonyms"], mean["random-words"]))
    larger = section.compare(minus(gaps["nearest"], gaps["physical"]))
    yield (
        f"over the three ways random words minus original labels is {points(random)}, and synonyms minus random words "
        f"{points(meaning)}; the gain from synonyms for nearest minus that for physical neighbour is {points(larger)}."
    )


STUDY = Study(
    name="labels",
    title="What labels are shown as",
    question="Does it help to show the demonstrations' labels as other words than those to be predicted, and must "
    "these words mean the same?",
    paper="Random words are better than the original labels and synonyms better than random words, for all three ways "
    "to find sentences; the gap between original labels and synonyms is largest for nearest and smallest for physical "
    "neighbour.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
)
