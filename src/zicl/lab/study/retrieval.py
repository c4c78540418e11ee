"""Retrieval: which sentences make good demonstrations; labels are synonyms throughout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.study.base import Count, Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import RETRIEVALS, grid_method, method_name, method_style, style_of, suffix, variant
from zicl.lab.study.outcome import SectionOutcome, StudyOutcome, points

# 4,096 of the 26.9 million sentences that the paper's appendix counts.
PAPER_SHARE = 4096 / 26.9e6
_DIVERSE = method_name("diverse", "synonyms")
_SHARE = f"{_DIVERSE}-share"


class RetrievalOptions(StudyOptions):
    """``pools`` are the numbers K of nearest sentences that diverse nearest draws from, in the sweep.

    ``share`` is K as a share of the corpus, by default the paper's.
    """

    pools: tuple[Count, ...] = Field((64, 256, 1024, 16384), min_length=1)
    share: float = Field(PAPER_SHARE, gt=0, lt=1)


def _pool_name(pool: int) -> str:
    return f"{_DIVERSE}-pool-{suffix(pool)}"


def _parts(options: RetrievalOptions, _: StudySetup) -> list[StudyPart]:
    methods = {method_name(name, "synonyms"): grid_method(name, "synonyms") for name in RETRIEVALS}
    diverse = methods[_DIVERSE]
    share = variant(diverse, "the paper's share of the corpus, at least 2 k", retrieval={"pool": options.share})
    pools = {
        _pool_name(pool): variant(diverse, f"K = {pool:,}", retrieval={"pool": pool})
        for pool in options.pools
        if pool != diverse.retrieval.pool
    }
    return [
        StudyPart("methods", {"no-demos": EXPERIMENT_METHODS["no-demos"], **methods, _SHARE: share}),
        *([StudyPart("sweep", pools)] if pools else []),
    ]


def _figures(options: RetrievalOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    style = method_style("diverse", "synonyms")

    def methods(section: SectionOutcome) -> Iterator[Series]:
        yield section.bars_by_task("No-demos", style_of("no-demos"), "no-demos")
        for name, title in RETRIEVALS.items():
            yield section.bars_by_task(title, method_style(name, "synonyms"), method_name(name, "synonyms"))
            if name == "diverse":
                share = "Diverse nearest, the paper's share, at least 2 k"
                yield section.bars_by_task(share, replace(style, hatch="--"), _SHARE)

    def sweep(section: SectionOutcome) -> Iterator[Series]:
        names = {float(pool): _pool_name(pool) for pool in options.pools} | {4096.0: _DIVERSE}
        yield section.line("Diverse nearest, synonyms", style, dict(sorted(names.items())))

    return [
        StudyFigure("retrieval", "Ways to find sentences", "", ACCURACY, outcome.panels(methods)),
        StudyFigure(
            "pool", "How far diverse nearest looks", "K, nearest sentences to draw from", ACCURACY,
            outcome.panels(sweep), "lines", log_x=True,
        ),
    ]  # fmt: skip


def _findings(_: RetrievalOptions, section: SectionOutcome) -> Iterator[str]:
    def difference(first: str, second: str) -> str:
        return points(section.compare({first: 1, second: -1}))

    nearest, random = method_name("nearest", "synonyms"), method_name("domain-random", "synonyms")
    yield (
        f"against nearest, physical neighbour is {difference('z-icl', nearest)} and diverse nearest (K = 4,096) "
        f"{difference(_DIVERSE, nearest)}; the first minus the second is {difference('z-icl', _DIVERSE)} "
        f"({section.size([nearest, _DIVERSE, 'z-icl'])})."
    )
    yield (
        f"against domain random, physical neighbour is {difference('z-icl', random)}; diverse nearest with the paper's "
        f"share of the corpus, but at least 2 k sentences, is {difference(_SHARE, _DIVERSE)} against K = 4,096."
    )


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
