"""From a study's rows to what it tells: figures, and findings computed from the numbers."""

from __future__ import annotations

from pathlib import Path

from zicl.lab.evaluate.store import MANIFEST, ROWS
from zicl.lab.report.collect import collect
from zicl.lab.report.study_summary import Told
from zicl.lab.study.base import Options, Study
from zicl.lab.study.draw import draw
from zicl.lab.study.figure import Drawn, Figure
from zicl.lab.study.outcome import Outcome


def tell(study: Study, options: Options, folder: Path) -> Told:
    """Draw a study's figures and write its findings, from the rows its folder holds."""
    parts = [path for path in sorted(folder.iterdir()) if (path / MANIFEST).is_file() and (path / ROWS).is_dir()]
    findings: tuple[str, ...] = ()
    figures: tuple[Drawn, ...] = ()
    if parts:
        outcome = Outcome(collect(parts), folder)
        made = [_drawn(each, folder) for each in study.figures(options, outcome)]
        figures = tuple(each for each in made if each is not None)
        findings = tuple(study.findings(options, outcome))
    told = Told(study.name, study.title, study.question, study.paper, findings, figures)
    told.write(folder)
    return told


def _drawn(figure: Figure | Drawn, folder: Path) -> Drawn | None:
    if isinstance(figure, Drawn):
        return figure
    written = draw(figure, folder)
    return Drawn(written[0].name, figure.title, figure.alt) if written else None
