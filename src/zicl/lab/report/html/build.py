"""The page from top to bottom: results and studies in, one HTML text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zicl.lab.report.build import Report
from zicl.lab.report.calibrate import calibrated
from zicl.lab.report.cells import Metric, Results
from zicl.lab.report.collect import collect
from zicl.lab.report.html.choose import limit
from zicl.lab.report.html.data import page_data
from zicl.lab.report.html.figures import drawn, figure_html
from zicl.lab.report.html.folders import Found
from zicl.lab.report.html.origin import origin_html, time_taken
from zicl.lab.report.html.page import Part, page_html, resource
from zicl.lab.report.html.predictions import Answers, answers
from zicl.lab.report.html.studies import Study, study_html
from zicl.lab.report.html.tables import facts_html, notes_html, table_html
from zicl.lab.report.html.texts import Texts
from zicl.lab.report.main_table import main_table

RESULTS = "results"


@dataclass(frozen=True)
class Browsing:
    """What the browser of predictions may show: texts or only ids, and how many predictions of each cell."""

    show_texts: bool = True
    predictions: int | None = None


def make_page(found: Found, report: Report | None, texts: Texts, browsing: Browsing) -> str:
    """The page on what was found; ``report`` is the one on the results that belong to no study."""
    metric: Metric = "accuracy" if report is None else report.metric
    behind = {study.id: _collected(study) for study in found.studies}
    sources = [] if report is None else [(RESULTS, found.results, report.results)]
    sources += [(s.name, s.results, results) for s in found.studies if (results := behind[s.id]) is not None]
    cells = sum(len(cell.runs) for _, _, results in sources for cell in results.cells.values())
    shown = [one for source in sources for one in answers(*source, limit(cells, browsing.predictions))]
    data = page_data(shown, texts, show=browsing.show_texts)
    parts = [
        *([] if report is None else _report_parts(report)),
        *_study_parts(found.studies, behind, metric),
        Part("predictions", "Predictions", notes_html(data.notes) + resource("browser.html")) if shown else None,
        Part("origin", "Configuration", "\n".join(origin_html(*each) for each in _folders(found))),
    ]
    title = "Evaluation report" if report is not None else "Studies"
    return page_html(title, facts_html(_summary(found, report, shown)), [p for p in parts if p is not None], data.value)


def _report_parts(report: Report) -> list[Part]:
    main, *others = report.tables
    parts = [Part("main-table", "Main table", table_html(main))]
    if others:
        parts.append(Part("more-tables", "More tables", "\n".join(map(table_html, others))))
    figures = drawn(report.results)
    if figures:
        parts.append(Part("figures", "Figures", "\n".join(figure_html(figure, "figure", 3) for figure in figures)))
    return parts


def _study_parts(studies: Sequence[Study], behind: dict[str, Results | None], metric: Metric) -> list[Part]:
    if not studies:
        return []
    bodies = []
    for study in studies:
        results = behind[study.id]
        numbers = "" if results is None else table_html(main_table(results, metric, paper=False), study.id)
        bodies.append(study_html(study, numbers))
    return [Part("studies", "Studies", "\n".join(bodies), tuple((study.id, study.title) for study in studies))]


def _collected(study: Study) -> Results | None:
    return calibrated(collect(study.results), every=False) if study.results else None


def _folders(found: Found) -> list[tuple[str, Path]]:
    """All results folders with their titles: parts of two studies may have one name."""
    own = [(folder.name, folder) for folder in found.results]
    return own + [(f"{study.name}: {folder.name}", folder) for study in found.studies for folder in study.results]


def _summary(found: Found, report: Report | None, shown: Sequence[Answers]) -> dict[str, str]:
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
