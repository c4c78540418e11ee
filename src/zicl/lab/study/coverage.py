"""Coverage: Z-ICL with and without the tasks' domain in the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.study.base import Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import style_of, variant
from zicl.lab.study.outcome import SectionOutcome, StudyOutcome, points

_WITHOUT = "z-icl-without"


class CoverageOptions(StudyOptions):
    """``domains`` are those of the tasks: Z-ICL is run with and without them."""

    domains: tuple[str, ...] = Field(("imdb",), min_length=1)


def _parts(options: CoverageOptions, _: StudySetup) -> list[StudyPart]:
    ours = EXPERIMENT_METHODS["z-icl"]
    without = variant(ours, f"without {', '.join(options.domains)}", without=options.domains)
    return [StudyPart("domains", {"no-demos": EXPERIMENT_METHODS["no-demos"], "z-icl": ours, _WITHOUT: without})]


def _figures(options: CoverageOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    names, without = ", ".join(options.domains), replace(style_of("z-icl"), hatch="xx")

    def series(section: SectionOutcome) -> Iterator[Series]:
        yield section.bars_by_task("No-demos", style_of("no-demos"), "no-demos")
        yield section.bars_by_task(f"Z-ICL without {names}", without, _WITHOUT)
        yield section.bars_by_task(f"Z-ICL with {names}", style_of("z-icl"), "z-icl")

    return [StudyFigure("coverage", "The coverage of the corpus", "", ACCURACY, outcome.panels(series))]


def _findings(options: CoverageOptions, section: SectionOutcome) -> Iterator[str]:
    names = ", ".join(options.domains)
    yield (
        f"Z-ICL with {names} in the corpus minus without is {points(section.compare({'z-icl': 1, _WITHOUT: -1}))} "
        f"({section.size(['z-icl', _WITHOUT])})."
    )
    without, with_domains = (section.compare({name: 1, "no-demos": -1}) for name in (_WITHOUT, "z-icl"))
    yield f"against no-demos it is {points(without)} without and {points(with_domains)} with {names}."


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
