"""Closeness: accuracy and copying where the nearest sentence is far, near, or a paraphrase planted in the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from zicl.lab.report.statistics import correct
from zicl.lab.study.base import Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Panel, Series, StudyFigure
from zicl.lab.study.method_grid import grid_method, method_name, method_style, method_title, variant
from zicl.lab.study.outcome import (
    Measure,
    SectionOutcome,
    StudyOutcome,
    all_seeds,
    copied_nearest,
    interval_series,
    minus,
    percent,
    points,
)

_GRID = [(retrieval, words) for retrieval in ("nearest", "physical") for words in ("original", "synonyms")]
_NAIVE = method_name("nearest", "original")
# Fewer examples than this say nothing about a bin.
_LEAST = 10
_COPIED = "label of the nearest predicted, per cent"

Edge = Annotated[float, Field(gt=-1, lt=1)]


class ClosenessOptions(StudyOptions):
    """``bins`` are the limits between bins of the nearest sentence's similarity."""

    bins: tuple[Edge, ...] = Field((0.7, 0.75, 0.8, 0.85, 0.9), min_length=1)


def _planted(name: str) -> str:
    return f"{name}-planted"


def _parts(_: ClosenessOptions, __: StudySetup) -> list[StudyPart]:
    methods = {method_name(*each): grid_method(*each) for each in _GRID}
    planted = {_planted(name): variant(method, "paraphrases planted", planted=True) for name, method in methods.items()}
    return [StudyPart("words", methods), StudyPart("planted", planted)]


def _bins(options: ClosenessOptions, section: SectionOutcome) -> Iterator[tuple[str, SectionOutcome]]:
    """Yield the bins that have enough examples, with the examples in them."""
    similarities = section.similarities(_NAIVE)
    for low, high in pairwise((-1.0, *sorted(options.bins), 1.01)):
        chosen = {
            task: {seed: examples[(low <= near) & (near < high)] for seed, (examples, near) in by_seed.items()}
            for task, by_seed in similarities.items()
        }
        count = sum(len(all_seeds(by_seed)) for by_seed in chosen.values())
        if count >= _LEAST:
            name = f"under {high:g}" if low == -1 else f"from {low:g}" if high > 1 else f"{low:g} to {high:g}"
            yield f"{name} ({count})", section.among(chosen)


def _figures(options: ClosenessOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def by_bin(measure: Measure) -> tuple[Panel, ...]:
        def series(section: SectionOutcome) -> Iterator[Series]:
            bins = dict(_bins(options, section))
            for each in _GRID:
                weights = {method_name(*each): 1.0}
                values = {name: part.compare(weights, measure=measure) for name, part in bins.items()}
                yield interval_series(method_title(*each), method_style(*each), values)

        return outcome.panels(series)

    def planted(measure: Measure) -> tuple[Panel, ...]:
        def series(section: SectionOutcome) -> Iterator[Series]:
            for each in _GRID:
                name = method_name(*each)
                groups = {"the corpus as it is": name, "paraphrases planted": _planted(name)}
                values = {group: section.compare({one: 1.0}, measure=measure) for group, one in groups.items()}
                yield interval_series(method_title(*each), method_style(*each), values)

        return outcome.panels(series)

    near = "similarity of the nearest sentence (examples)"
    return [
        StudyFigure("accuracy-by-closeness", "Accuracy by closeness", near, ACCURACY, by_bin(correct)),
        StudyFigure("copied-by-closeness", "Copied labels by closeness", near, _COPIED, by_bin(copied_nearest)),
        StudyFigure("accuracy-planted", "Accuracy with planted paraphrases", "", ACCURACY, planted(correct)),
        StudyFigure("copied-planted", "Copied labels with planted paraphrases", "", _COPIED, planted(copied_nearest)),
    ]


def _findings(_: ClosenessOptions, section: SectionOutcome) -> Iterator[str]:
    names = [method_name(*each) for each in _GRID]

    def gain(retrieval: str, words: str) -> dict[str, float]:
        return {method_name(retrieval, words): 1.0}

    by_retrieval = {
        words: section.compare(minus(gain("physical", words), gain("nearest", words)))
        for words in ("original", "synonyms")
    }
    by_words = {
        retrieval: section.compare(minus(gain(retrieval, "synonyms"), gain(retrieval, "original")))
        for retrieval in ("nearest", "physical")
    }
    both = section.compare(minus(gain("physical", "synonyms"), gain("nearest", "original")))
    yield (
        f"physical neighbour minus nearest is {points(by_retrieval['original'])} with original labels and "
        f"{points(by_retrieval['synonyms'])} with synonyms; synonyms minus original labels is "
        f"{points(by_words['nearest'])} for nearest and {points(by_words['physical'])} for physical neighbour; both "
        f"changes together are {points(both)} ({section.size(names)})."
    )
    far, near = section.thirds(_NAIVE)
    copied = {name: [part.compare({name: 1}, measure=copied_nearest) for part in (far, near)] for name in names}
    yield (
        f"the label of the nearest demonstration is predicted in {percent(copied[_NAIVE][0])} of the third of texts "
        f"whose nearest sentence is farthest ({far.median_similarity(_NAIVE)}) and in {percent(copied[_NAIVE][1])} of "
        f"the third where it is nearest ({near.median_similarity(_NAIVE)}) for nearest with original "
        f"labels; in {percent(copied['z-icl'][0])} and {percent(copied['z-icl'][1])} for Z-ICL."
    )
    shifts = {
        name: section.compare({_planted(name): 1, name: -1}, measure=copied_nearest) for name in (_NAIVE, "z-icl")
    }
    accuracy = {name: section.compare({_planted(name): 1, name: -1}) for name in (_NAIVE, "z-icl")}
    lead = section.compare(minus({_planted("z-icl"): 1, _planted(_NAIVE): -1}, {"z-icl": 1, _NAIVE: -1}))
    yield (
        f"with a paraphrase of each text planted in the corpus ({section.median_similarity(_planted(_NAIVE))}) the "
        f"label of the nearest is predicted {points(shifts[_NAIVE])} more often for nearest with original labels and "
        f"{points(shifts['z-icl'])} for Z-ICL; accuracy changes by {points(accuracy[_NAIVE])} and "
        f"{points(accuracy['z-icl'])}, and the lead of Z-ICL by {points(lead)} "
        f"({section.size([_NAIVE, _planted(_NAIVE)])})."
    )


STUDY = Study(
    name="closeness",
    title="Closeness",
    question="Are the labels of demonstrations copied more where these are closer to the input, and do physical "
    "neighbours and synonyms help more there?",
    paper="The copying effect is that a prediction follows the labels of demonstrations that are very close to the "
    "input. Physical neighbours, which are less close, and synonyms, which are other words than those to be predicted, "
    "each reduce it, and are best together; the paper does not measure it against closeness.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=ClosenessOptions,
)
