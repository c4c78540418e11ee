"""Coverage: the corpus with and without the domain of the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.report.cells import ReportSection
from zicl.lab.study.base import Study, StudyInputs, StudyOptions, StudyPart
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import changed, style_of
from zicl.lab.study.outcome import StudyOutcome, points

_WITHOUT = "z-icl-without"


class CoverageOptions(StudyOptions):
    """``domains`` of the corpus that are left out: those of the tasks."""

    domains: tuple[str, ...] = Field(("imdb",), min_length=1)


def _parts(options: CoverageOptions, _: StudyInputs) -> list[StudyPart]:
    ours = EXPERIMENT_METHODS["z-icl"]
    without = changed(ours, f"without {', '.join(options.domains)}", without=options.domains)
    return [StudyPart("domains", {"no-demos": EXPERIMENT_METHODS["no-demos"], "z-icl": ours, _WITHOUT: without})]


def _figures(options: CoverageOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def series(block: ReportSection) -> Sequence[Series]:
        names = ", ".join(options.domains)
        without = replace(style_of("z-icl"), hatch="xx")
        return [
            outcome.by_task(block, "No-demos", style_of("no-demos"), "no-demos"),
            outcome.by_task(block, f"Z-ICL without {names}", without, _WITHOUT),
            outcome.by_task(block, f"Z-ICL with {names}", style_of("z-icl"), "z-icl"),
        ]

    return [StudyFigure("coverage", "The coverage of the corpus", "", ACCURACY, outcome.panels(series))]


def _findings(options: CoverageOptions, outcome: StudyOutcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        names = ", ".join(options.domains)
        said.append(
            f"{outcome.name(block)}: Z-ICL with {names} in the corpus minus without is "
            f"{points(outcome.compare(block, {'z-icl': 1, _WITHOUT: -1}))} "
            f"({outcome.size(block, ['z-icl', _WITHOUT])})."
        )
        before, after = (outcome.compare(block, {name: 1, "no-demos": -1}) for name in (_WITHOUT, "z-icl"))
        said.append(
            f"{outcome.name(block)}: against no-demos it is {points(before)} without and {points(after)} with {names}."
        )
    return said


STUDY = Study(
    name="coverage",
    title="The coverage of the corpus",
    question="Does it help to add text of the tasks' domain to the corpus?",
    paper="Adding IMDB reviews, 2 % of the corpus' size, improves MR, SST2 and SST5 for all its language models.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=CoverageOptions,
    tasks=("MR", "SST2", "SST5"),
)
