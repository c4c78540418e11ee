"""One HTML file: style, script and data inside it, and a policy that lets nothing else in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from zicl._util.html import csp_hash, escape, json_in_html
from zicl._util.process import __version__
from zicl.lab.report.build import EvaluationReport
from zicl.lab.report.cells import Metric, ResultSet
from zicl.lab.report.collect import collect
from zicl.lab.report.html.data import page_data
from zicl.lab.report.html.predictions import StoredPredictions, limit, stored_predictions
from zicl.lab.report.html.sections import (
    PageStudy,
    draw_figures_inline,
    facts_html,
    figure_html,
    notes_html,
    origin_html,
    study_html,
    table_html,
    time_taken,
)
from zicl.lab.report.html.sources import FoundFolders, SourceTexts
from zicl.lab.report.main_table import main_table
from zicl.lab.report.recalibrate import calibrate_results


@dataclass(frozen=True)
class PageSection:
    """A section of the page; ``inside`` are the names and titles of parts of it that the contents list too."""

    id: str
    title: str
    body: str
    inside: tuple[tuple[str, str], ...] = ()


def page_html(title: str, summary: str, parts: Sequence[PageSection], data: Any) -> str:
    """The whole page. ``summary`` and the parts' bodies are HTML, escaped where they were made."""
    style, script = resource("page.css"), resource("page.js")
    return Template(resource("page.html")).substitute(
        policy=policy(style, script),
        title=escape(title),
        style=style,
        summary=summary,
        contents="\n".join(_entry(part) for part in parts),
        sections="\n".join(_section(part) for part in parts),
        version=escape(__version__),
        data=json_in_html(data),
        script=script,
    )


def policy(style: str, script: str) -> str:
    """A content security policy: this style, this script, images inside the page, and no address at all."""
    return (
        f"default-src 'none'; style-src {csp_hash(style)}; script-src {csp_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def resource(name: str) -> str:
    """A file of the page as it ships with the package."""
    return (files("zicl.lab.report.html") / name).read_text(encoding="utf-8")


def _entry(part: PageSection) -> str:
    inside = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in part.inside)
    below = f"<ul>{inside}</ul>" if inside else ""
    return f'<li><a href="#{part.id}">{escape(part.title)}</a>{below}</li>'


def _section(part: PageSection) -> str:
    return (
        f'<section id="{part.id}" aria-labelledby="{part.id}-title">\n'
        f'<h2 id="{part.id}-title">{escape(part.title)}</h2>\n{part.body}\n</section>'
    )


# -- The page from top to bottom: results and studies in, one HTML text out.


RESULTS = "results"


@dataclass(frozen=True)
class Browsing:
    """What the browser of predictions may show: texts or only ids, and how many predictions of each cell."""

    show_texts: bool = True
    predictions: int | None = None


def make_page(found: FoundFolders, report: EvaluationReport | None, texts: SourceTexts, browsing: Browsing) -> str:
    """The page on what was found; ``report`` is the one on the results that belong to no study."""
    metric: Metric = "accuracy" if report is None else report.metric
    behind = {study.id: _collected(study) for study in found.studies}
    sources = [] if report is None else [(RESULTS, found.results, report.results)]
    sources += [(s.name, s.results, results) for s in found.studies if (results := behind[s.id]) is not None]
    cells = sum(len(cell.runs) for _, _, results in sources for cell in results.cells.values())
    shown = [one for source in sources for one in stored_predictions(*source, limit(cells, browsing.predictions))]
    data = page_data(shown, texts, show=browsing.show_texts)
    parts = [
        *([] if report is None else _report_parts(report)),
        *_study_parts(found.studies, behind, metric),
        PageSection("predictions", "Predictions", notes_html(data.notes) + resource("browser.html")) if shown else None,
        PageSection("origin", "Configuration", "\n".join(origin_html(*each) for each in _folders(found))),
    ]
    title = "Evaluation report" if report is not None else "Studies"
    return page_html(title, facts_html(_summary(found, report, shown)), [p for p in parts if p is not None], data.value)


def _report_parts(report: EvaluationReport) -> list[PageSection]:
    main, *others = report.tables
    parts = [PageSection("main-table", "Main table", table_html(main))]
    if others:
        parts.append(PageSection("more-tables", "More tables", "\n".join(map(table_html, others))))
    figures = draw_figures_inline(report.results)
    if figures:
        parts.append(
            PageSection("figures", "Figures", "\n".join(figure_html(figure, "figure", 3) for figure in figures))
        )
    return parts


def _study_parts(
    studies: Sequence[PageStudy], behind: dict[str, ResultSet | None], metric: Metric
) -> list[PageSection]:
    if not studies:
        return []
    bodies = []
    for study in studies:
        results = behind[study.id]
        numbers = "" if results is None else table_html(main_table(results, metric, paper=False), study.id)
        bodies.append(study_html(study, numbers))
    return [PageSection("studies", "Studies", "\n".join(bodies), tuple((study.id, study.title) for study in studies))]


def _collected(study: PageStudy) -> ResultSet | None:
    return calibrate_results(collect(study.results), every=False) if study.results else None


def _folders(found: FoundFolders) -> list[tuple[str, Path]]:
    """All results folders with their titles: parts of two studies may have one name."""
    own = [(folder.name, folder) for folder in found.results]
    return own + [(f"{study.name}: {folder.name}", folder) for study in found.studies for folder in study.results]


def _summary(
    found: FoundFolders, report: EvaluationReport | None, shown: Sequence[StoredPredictions]
) -> dict[str, str]:
    facts: dict[str, str] = {}
    if report is not None:
        results = report.results
        facts["Model"] = ", ".join(results.models)
        facts["Tasks"] = f"{len(results.tasks)}: {', '.join(results.tasks)}"
        facts["Methods"] = f"{len({key.method for key in results.cells})}"
    if found.studies:
        facts["Studies"] = ", ".join(study.name for study in found.studies)
    facts["Time"] = time_taken(folder for _, folder in _folders(found))
    facts["Predictions"] = f"{sum(own.total for own in shown):,}"
    if report is not None and report.results.missing:
        facts["Not finished"] = f"{report.results.missing:,} predictions are missing"
    return facts
