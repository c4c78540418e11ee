"""Labels: original words, random words and synonyms, for three ways to find sentences."""

from __future__ import annotations

from collections.abc import Sequence

from zicl.lab.report.cells import ReportSection
from zicl.lab.study.base import Study, StudyInputs, StudyOptions, StudyPart
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import RETRIEVALS, WORDS, grid_method, method_name, method_style, method_title
from zicl.lab.study.outcome import StudyOutcome, minus, points

_WAYS = ("nearest", "diverse", "physical")


def _parts(_: StudyOptions, __: StudyInputs) -> list[StudyPart]:
    return [StudyPart("words", {method_name(way, words): grid_method(way, words) for way in _WAYS for words in WORDS})]


def _figures(_: StudyOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def series(block: ReportSection) -> Sequence[Series]:
        return [
            outcome.bars(
                block, method_title(way, words), method_style(way, words), {RETRIEVALS[way]: method_name(way, words)}
            )
            for way in _WAYS
            for words in WORDS
        ]

    return [StudyFigure("labels", "What labels are shown as", "", ACCURACY, outcome.panels(series))]


def _findings(_: StudyOptions, outcome: StudyOutcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        gaps = {way: {method_name(way, "synonyms"): 1.0, method_name(way, "original"): -1.0} for way in _WAYS}
        each = [f"{points(outcome.compare(block, gap))} for {RETRIEVALS[way].lower()}" for way, gap in gaps.items()]
        every = [method_name(way, words) for way in _WAYS for words in WORDS]
        size = outcome.size(block, every)
        said.append(f"{outcome.name(block)}: synonyms minus original labels is {', '.join(each)} ({size}).")
        mean = {words: {method_name(way, words): 1 / 3 for way in _WAYS} for words in WORDS}
        random = outcome.compare(block, minus(mean["random-words"], mean["original"]))
        meaning = outcome.compare(block, minus(mean["synonyms"], mean["random-words"]))
        larger = outcome.compare(block, minus(gaps["nearest"], gaps["physical"]))
        said.append(
            f"{outcome.name(block)}: over the three ways random words minus original labels is {points(random)}, and "
            f"synonyms minus random words {points(meaning)}; the gain from synonyms for nearest minus that for "
            f"physical neighbour is {points(larger)}."
        )
    return said


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
