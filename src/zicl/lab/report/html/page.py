"""Make the page: one HTML file with its style, script, images and data, and a policy that allows nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any

from zicl._util.html import csp_hash, escape, json_in_html
from zicl._util.process import __version__
from zicl.lab.report.batch_calibration import calibrate_results
from zicl.lab.report.build import EvaluationReport
from zicl.lab.report.cells import Metric, ResultSet
from zicl.lab.report.collect import collect
from zicl.lab.report.html.data import page_data
from zicl.lab.report.html.predictions import StoredPredictions, cell_limit, stored_predictions
from zicl.lab.report.html.sections import (
    compute_time,
    facts_html,
    figure_html,
    notes_html,
    origin_html,
    study_html,
    table_html,
)
from zicl.lab.report.html.sources import IMAGE_TYPES, PageFigure, PageFolders, PageStudy, SourceTexts
from zicl.lab.report.reliability import draw_figures
from zicl.lab.report.tables import main_table

_RESULTS = "results"


@dataclass(frozen=True)
class BrowserOptions:
    """What the prediction browser shows: texts or only ids, and how many predictions of each cell."""

    show_texts: bool = True
    predictions: int | None = None


@dataclass(frozen=True)
class PageSection:
    """A section of the page; ``subsections`` are ids and titles that the table of contents lists as well."""

    id: str
    title: str
    body: str
    subsections: tuple[tuple[str, str], ...] = ()


def make_page(
    folders: PageFolders, report: EvaluationReport | None, texts: SourceTexts, browsing: BrowserOptions
) -> str:
    """Return the page on some folders; ``report`` is on the results that belong to no study."""
    metric: Metric = "accuracy" if report is None else report.metric
    studied = {study.id: _collect_study(study) for study in folders.studies}
    sources = [] if report is None else [(_RESULTS, folders.results, report.results)]
    sources += [(s.name, s.results, results) for s in folders.studies if (results := studied[s.id]) is not None]
    runs = sum(len(cell.runs) for _, _, results in sources for cell in results.cells.values())
    limit = cell_limit(runs, browsing.predictions)
    cells = [cell for source in sources for cell in stored_predictions(*source, limit)]
    data = page_data(cells, texts, show_texts=browsing.show_texts)
    sections = [] if report is None else _report_sections(report)
    sections += _study_sections(folders.studies, studied, metric)
    if cells:
        sections.append(PageSection("predictions", "Predictions", notes_html(data.notes) + resource("browser.html")))
    origins = "\n".join(origin_html(*each) for each in _titled_folders(folders))
    sections.append(PageSection("origin", "Configuration", origins))
    title = "Evaluation report" if report is not None else "Studies"
    return page_html(title, facts_html(_summary(folders, report, cells)), sections, data.value)


def _collect_study(study: PageStudy) -> ResultSet | None:
    return calibrate_results(collect(study.results)) if study.results else None


def _report_sections(report: EvaluationReport) -> list[PageSection]:
    main, *others = report.tables
    sections = [PageSection("main-table", "Main table", table_html(main))]
    if others:
        sections.append(PageSection("more-tables", "More tables", "\n".join(map(table_html, others))))
    with TemporaryDirectory() as temporary:
        drawn = draw_figures(report.results, Path(temporary), (".svg",))
        figures = [
            PageFigure(
                title,
                f"{title}. A panel for each task and a line for each method.",
                IMAGE_TYPES[".svg"],
                p.read_bytes(),
            )
            for p, title in drawn.items()
        ]
    if figures:
        body = "\n".join(figure_html(figure, "figure", 3) for figure in figures)
        sections.append(PageSection("figures", "Figures", body))
    return sections


def _study_sections(
    studies: Sequence[PageStudy], studied: dict[str, ResultSet | None], metric: Metric
) -> list[PageSection]:
    if not studies:
        return []
    bodies = []
    for study in studies:
        results = studied[study.id]
        table = "" if results is None else table_html(main_table(results, metric), study.id)
        bodies.append(study_html(study, table))
    return [PageSection("studies", "Studies", "\n".join(bodies), tuple((study.id, study.title) for study in studies))]


def _titled_folders(folders: PageFolders) -> list[tuple[str, Path]]:
    """Return all results folders with their titles: parts of two studies may have the same name."""
    results = [(folder.name, folder) for folder in folders.results]
    return results + [(f"{study.name}: {folder.name}", folder) for study in folders.studies for folder in study.results]


def _summary(
    folders: PageFolders, report: EvaluationReport | None, cells: Sequence[StoredPredictions]
) -> dict[str, str]:
    facts: dict[str, str] = {}
    if report is not None:
        results = report.results
        facts["Model"] = ", ".join(results.models)
        facts["Tasks"] = f"{len(results.tasks)}: {', '.join(results.tasks)}"
        facts["Methods"] = f"{len({key.method for key in results.cells})}"
    if folders.studies:
        facts["Studies"] = ", ".join(study.name for study in folders.studies)
    facts["Time"] = compute_time(folder for _, folder in _titled_folders(folders))
    facts["Predictions"] = f"{sum(cell.total for cell in cells):,}"
    if report is not None and report.results.missing:
        facts["Not finished"] = f"{report.results.missing:,} predictions are missing"
    return facts


# -- the document --------------------------------------------------------------------------------


def page_html(title: str, summary: str, sections: Sequence[PageSection], data: Any) -> str:
    """Return the HTML document. ``summary`` and the bodies are HTML, escaped where they were made."""
    style, script = resource("page.css"), resource("page.js")
    return Template(resource("page.html")).substitute(
        policy=content_policy(style, script),
        title=escape(title),
        style=style,
        summary=summary,
        contents="\n".join(_contents_entry(section) for section in sections),
        sections="\n".join(
            f'<section id="{section.id}" aria-labelledby="{section.id}-title">\n'
            f'<h2 id="{section.id}-title">{escape(section.title)}</h2>\n{section.body}\n</section>'
            for section in sections
        ),
        version=escape(__version__),
        data=json_in_html(data),
        script=script,
    )


def content_policy(style: str, script: str) -> str:
    """Return a content security policy that allows this style, this script, inline images, and no address at all."""
    return (
        f"default-src 'none'; style-src {csp_hash(style)}; script-src {csp_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def resource(name: str) -> str:
    """Read a file of the page that ships with the package."""
    return (files("zicl.lab.report.html") / name).read_text(encoding="utf-8")


def _contents_entry(section: PageSection) -> str:
    links = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in section.subsections)
    below = f"<ul>{links}</ul>" if links else ""
    return f'<li><a href="#{section.id}">{escape(section.title)}</a>{below}</li>'
