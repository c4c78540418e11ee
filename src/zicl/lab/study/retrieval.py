"""Retrieval: which sentences make good demonstrations, with synonym labels throughout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.report.cells import ReportSection
from zicl.lab.report.statistics import Interval
from zicl.lab.study.base import Count, Study, StudyInputs, StudyOptions, StudyPart
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import RETRIEVALS, changed, grid_method, method_name, method_style, style_of, suffix
from zicl.lab.study.outcome import StudyOutcome, points

# 4,096 of the 26.9 million sentences that the paper's appendix counts.
PAPER_SHARE = 4096 / 26.9e6
_SHARE = "diverse-synonyms-share"


class RetrievalOptions(StudyOptions):
    """``pools`` are the numbers of nearest sentences K that diverse nearest draws from, in the sweep.

    ``share`` is K as a share of the corpus, the paper's.
    """

    pools: tuple[Count, ...] = Field((64, 256, 1024, 16384), min_length=1)
    share: float = Field(PAPER_SHARE, gt=0, lt=1)


def _pool_name(pool: int) -> str:
    return f"diverse-synonyms-pool-{suffix(pool)}"


def _parts(options: RetrievalOptions, _: StudyInputs) -> list[StudyPart]:
    arms = {method_name(name, "synonyms"): grid_method(name, "synonyms") for name in RETRIEVALS}
    diverse = grid_method("diverse", "synonyms")
    share = changed(diverse, "the paper's share of the corpus, at least 2 k", retrieval={"pool": options.share})
    pools = {
        _pool_name(pool): changed(diverse, f"K = {pool:,}", retrieval={"pool": pool})
        for pool in options.pools
        if pool != diverse.retrieval.pool
    }
    return [
        StudyPart("methods", {"no-demos": EXPERIMENT_METHODS["no-demos"], **arms, _SHARE: share}),
        *([StudyPart("sweep", pools)] if pools else []),
    ]


def _figures(options: RetrievalOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def methods(block: ReportSection) -> Sequence[Series]:
        shown = [("No-demos", style_of("no-demos"), "no-demos")]
        shown += [
            (title, method_style(name, "synonyms"), method_name(name, "synonyms")) for name, title in RETRIEVALS.items()
        ]
        share = replace(method_style("diverse", "synonyms"), hatch="--")
        shown.insert(3, ("Diverse nearest, the paper's share, at least 2 k", share, _SHARE))
        return [outcome.by_task(block, *each) for each in shown]

    def sweep(block: ReportSection) -> Sequence[Series]:
        names = {float(pool): _pool_name(pool) for pool in options.pools} | {4096.0: "diverse-synonyms"}
        shown = method_style("diverse", "synonyms")
        return [outcome.line(block, "Diverse nearest, synonyms", shown, dict(sorted(names.items())))]

    lines = StudyFigure(
        "pool", "How far diverse nearest looks", "K, nearest sentences to draw from", ACCURACY, outcome.panels(sweep),
        "lines", logarithmic=True,
    )  # fmt: skip
    return [StudyFigure("retrieval", "Ways to find sentences", "", ACCURACY, outcome.panels(methods)), lines]


def _findings(_: RetrievalOptions, outcome: StudyOutcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        nearest, diverse = method_name("nearest", "synonyms"), method_name("diverse", "synonyms")
        random = method_name("domain-random", "synonyms")
        said.append(
            f"{outcome.name(block)}: against nearest, physical neighbour is "
            f"{points(_minus(outcome, block, 'z-icl', nearest))} and diverse nearest (K = 4,096) "
            f"{points(_minus(outcome, block, diverse, nearest))}; the first minus the second is "
            f"{points(_minus(outcome, block, 'z-icl', diverse))} ({outcome.size(block, [nearest, diverse, 'z-icl'])})."
        )
        said.append(
            f"{outcome.name(block)}: against domain random, physical neighbour is "
            f"{points(_minus(outcome, block, 'z-icl', random))}; diverse nearest with the paper's share of the corpus, "
            f"but at least 2 k sentences, is {points(_minus(outcome, block, _SHARE, diverse))} against K = 4,096."
        )
    return said


def _minus(outcome: StudyOutcome, block: ReportSection, first: str, second: str) -> Interval | None:
    return outcome.compare(block, {first: 1, second: -1})


STUDY = Study(
    name="retrieval",
    title="Ways to find sentences",
    question="Are sentences that are like the input but not too close better demonstrations than the nearest ones?",
    paper="Over its language models physical neighbour is the best of the three ways, diverse nearest (K = 4,096) is "
    "close to it, and nearest is the worst.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=RetrievalOptions,
)
