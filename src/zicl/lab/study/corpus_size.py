"""Corpus size: Z-ICL with ever smaller shares of the corpus' paragraphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.study.base import Methods, Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import style_of, suffix, variant
from zicl.lab.study.outcome import SectionOutcome, StudyOutcome, points

Share = Annotated[float, Field(gt=0, le=1)]


class SizeOptions(StudyOptions):
    """``shares`` of the corpus; shares with too few neighbours for the demonstrations are skipped."""

    shares: tuple[Share, ...] = Field((1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003), min_length=2)


def _name(share: float) -> str:
    return "z-icl" if share == 1 else f"z-icl-share-{suffix(share)}"


def _parts(options: SizeOptions, setup: StudySetup) -> list[StudyPart]:
    ours = EXPERIMENT_METHODS["z-icl"]
    methods: Methods = {
        _name(share): ours if share == 1 else variant(ours, f"{share:g} of the corpus", corpus_share=share)
        for share in _usable(options.shares, setup)
    }
    return [StudyPart("shares", {"no-demos": EXPERIMENT_METHODS["no-demos"], **methods})]


def _usable(shares: Sequence[float], setup: StudySetup) -> list[float]:
    """Return the shares, largest first, that leave enough sentences, and fewer than the share before.

    Every domain keeps at least one paragraph, so that very small shares can be equal.
    """
    usable, before = list[float](), tuple[int, ...]()
    for share in sorted(shares, reverse=True):
        count = setup.count_with_neighbour(share)
        # Twice the number of demonstrations, because duplicates and neighbours of the input itself are not shown.
        if share == 1 or (min(count) >= 2 * setup.k and count != before):
            usable.append(share)
            before = count
    return usable


def _with_rows(options: SizeOptions, section: SectionOutcome) -> list[float]:
    return [share for share in sorted(options.shares) if section.has(_name(share))]


def _figures(options: SizeOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def series(section: SectionOutcome) -> Iterator[Series]:
        shares = _with_rows(options, section)
        yield section.line("Z-ICL", style_of("z-icl"), {share: _name(share) for share in shares})
        yield section.line("No-demos", style_of("no-demos"), dict.fromkeys(shares, "no-demos"))

    panels, xlabel = outcome.panels(series), "share of the corpus' paragraphs"
    return [StudyFigure("corpus-size", "The size of the corpus", xlabel, ACCURACY, panels, "lines", log_x=True)]


def _findings(options: SizeOptions, section: SectionOutcome) -> Iterator[str]:
    shares = _with_rows(options, section)
    if len(shares) < 2:
        return
    least, most = shares[0], shares[-1]
    small, large = _name(least), _name(most)
    yield (
        f"Z-ICL with {most:g} of the corpus minus Z-ICL with {least:g} of it is "
        f"{points(section.compare({large: 1, small: -1}))} ({section.size([large, small])})."
    )
    yield (
        f"against no-demos it is {points(section.compare({large: 1, 'no-demos': -1}))} with {most:g} and "
        f"{points(section.compare({small: 1, 'no-demos': -1}))} with {least:g}."
    )


STUDY = Study(
    name="corpus-size",
    title="The size of the corpus",
    question="Does accuracy fall where the corpus is smaller, so that the nearest sentences are farther away?",
    paper="From 160 million paragraphs, as it says, down to 0.03 % of them accuracy goes down with the size, "
    "more clearly on tasks that the corpus covers.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=SizeOptions,
)
