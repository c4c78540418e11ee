"""Corpus size: the same corpus with a share of its paragraphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.report.cells import ReportSection
from zicl.lab.study.base import Arms, Study, StudyInputs, StudyOptions, StudyPart
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import changed, style_of, suffix
from zicl.lab.study.outcome import StudyOutcome, points

Share = Annotated[float, Field(gt=0, le=1)]


class SizeOptions(StudyOptions):
    """``shares`` of the corpus; those that leave too few neighbours for the demonstrations are left out."""

    shares: tuple[Share, ...] = Field((1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003), min_length=2)


def _name(share: float) -> str:
    return "z-icl" if share == 1 else f"z-icl-share-{suffix(share)}"


def _parts(options: SizeOptions, setup: StudyInputs) -> list[StudyPart]:
    ours = EXPERIMENT_METHODS["z-icl"]
    arms: Arms = {
        _name(share): ours if share == 1 else changed(ours, f"{share:g} of the corpus", corpus_share=share)
        for share in _different(options.shares, setup)
    }
    return [StudyPart("shares", {"no-demos": EXPERIMENT_METHODS["no-demos"], **arms})]


def _different(shares: Sequence[float], setup: StudyInputs) -> list[float]:
    """The shares, the largest first, that leave enough and less than the one before: each domain keeps a paragraph."""
    # Neighbours can be alike, or the input's own: twice as many as are shown leave room for that.
    kept, before = list[float](), tuple[int, ...]()
    for share in sorted(shares, reverse=True):
        left = setup.accompanied(share)
        if share == 1 or (min(left) >= 2 * setup.k and left != before):
            kept.append(share)
            before = left
    return kept


def _figures(options: SizeOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def series(block: ReportSection) -> Sequence[Series]:
        shares = sorted(options.shares)
        there = [share for share in shares if outcome.has(block, _name(share))]
        return [
            outcome.line(block, "Z-ICL", style_of("z-icl"), {share: _name(share) for share in shares}),
            outcome.line(block, "No-demos", style_of("no-demos"), dict.fromkeys(there, "no-demos")),
        ]

    panels = outcome.panels(series)
    across = "share of the corpus' paragraphs"
    return [StudyFigure("corpus-size", "The size of the corpus", across, ACCURACY, panels, "lines", logarithmic=True)]


def _findings(options: SizeOptions, outcome: StudyOutcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        there = [share for share in sorted(options.shares) if outcome.has(block, _name(share))]
        if len(there) < 2:
            continue
        least, most = there[0], there[-1]
        pair = [_name(most), _name(least)]
        said.append(
            f"{outcome.name(block)}: Z-ICL with {most:g} of the corpus minus Z-ICL with {least:g} of it is "
            f"{points(outcome.compare(block, {pair[0]: 1, pair[1]: -1}))} ({outcome.size(block, pair)})."
        )
        said.append(
            f"{outcome.name(block)}: against no-demos it is "
            f"{points(outcome.compare(block, {pair[0]: 1, 'no-demos': -1}))} with {most:g} and "
            f"{points(outcome.compare(block, {pair[1]: 1, 'no-demos': -1}))} with {least:g}."
        )
    return said


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
