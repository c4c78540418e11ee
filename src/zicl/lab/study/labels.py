"""Labels: original words, random words and synonyms, for three ways to find sentences."""

from __future__ import annotations

from collections.abc import Sequence

from zicl.lab.report.cells import Block
from zicl.lab.study.base import Options, Part, Setup, Study
from zicl.lab.study.figure import ACCURACY, Figure, Series
from zicl.lab.study.method_grid import RETRIEVALS, WORDS, arm, arm_look, arm_name, arm_title
from zicl.lab.study.outcome import Outcome, minus, points

_WAYS = ("nearest", "diverse", "physical")


def _parts(_: Options, __: Setup) -> list[Part]:
    return [Part("words", {arm_name(way, words): arm(way, words) for way in _WAYS for words in WORDS})]


def _figures(_: Options, outcome: Outcome) -> list[Figure]:
    def series(block: Block) -> Sequence[Series]:
        return [
            outcome.bars(block, arm_title(way, words), arm_look(way, words), {RETRIEVALS[way]: arm_name(way, words)})
            for way in _WAYS
            for words in WORDS
        ]

    return [Figure("labels", "What labels are shown as", "", ACCURACY, outcome.panels(series))]


def _findings(_: Options, outcome: Outcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        gaps = {way: {arm_name(way, "synonyms"): 1.0, arm_name(way, "original"): -1.0} for way in _WAYS}
        each = [f"{points(outcome.compare(block, gap))} for {RETRIEVALS[way].lower()}" for way, gap in gaps.items()]
        every = [arm_name(way, words) for way in _WAYS for words in WORDS]
        size = outcome.size(block, every)
        said.append(f"{outcome.name(block)}: synonyms minus original labels is {', '.join(each)} ({size}).")
        mean = {words: {arm_name(way, words): 1 / 3 for way in _WAYS} for words in WORDS}
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
