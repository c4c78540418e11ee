"""Tables as HTML: captions, and headings that say which rows and columns they are of."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from zicl._util.html import escape, slug
from zicl._util.progress import duration
from zicl.exceptions import StorageError
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.evaluate.timing import total_time
from zicl.lab.report.cells import ResultSet
from zicl.lab.report.figures import draw_figures
from zicl.lab.report.formats import NOTHING, number
from zicl.lab.report.study_summary import StudySummary
from zicl.lab.report.table import Table, TableEntry, TableSection


def table_html(table: Table, prefix: str = "table") -> str:
    """A table with its notes; wide ones scroll inside a region that the keyboard reaches."""
    name = f"{prefix}-{slug(table.title)}"
    groups = "".join(
        f'<th colspan="{span}" scope="colgroup">{escape(title)}</th>' if title else f'<td colspan="{span}"></td>'
        for title, span in table.groups
    )
    columns = "".join(f'<th scope="col">{escape(each.name + each.marks)}</th>' for each in table.columns)
    body = "".join(_section(section, len(table.columns) + 1, signed=table.signed) for section in table.sections)
    return (
        f'<div class="table"><div class="scroll" role="region" tabindex="0" aria-labelledby="{name}">'
        f'<table><caption id="{name}"><span>{escape(table.title)}</span></caption>'
        f'<thead><tr class="groups"><td></td>{groups}</tr><tr><th scope="col">Method</th>{columns}</tr></thead>'
        f"{body}</table></div>{notes_html(table.notes)}</div>"
    )


def _section(section: TableSection, width: int, *, signed: bool) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(row.title)}</th>'
        + "".join(f"<td>{_entry(entry, signed=signed)}</td>" for entry in row.entries)
        + "</tr>"
        for row in section.rows
    )
    title = f'<th colspan="{width}" scope="rowgroup">{escape(section.title)}</th>'
    return f'<tbody><tr class="section">{title}</tr>{rows}</tbody>'


def _entry(entry: TableEntry, *, signed: bool) -> str:
    if entry.value is None:
        return escape(entry.text) or NOTHING
    text = number(entry.value, signed=signed)
    text = f"<strong>{text}</strong>" if entry.best else text
    if entry.deviation is not None:
        text += f' <span class="spread">± {entry.deviation:.1f}</span>'
    if entry.interval is not None:
        ends = ", ".join(number(end, signed=signed) for end in entry.interval)
        text += f' <span class="spread">[{ends}]</span>'
    return text + escape(entry.marks)


def notes_html(notes: Iterable[str]) -> str:
    """What is to be said below something."""
    lines = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{lines}</ul>' if lines else ""


def facts_html(facts: Mapping[str, str]) -> str:
    """Names and what they are."""
    pairs = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{pairs}</dl>'


# -- Figures inside the page, as images of their own: nothing in one of them can reach the page around it.


_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True)
class PageFigure:
    """An image with its title, and its contents in words for who cannot see it."""

    title: str
    alt: str
    type: str
    data: bytes


def read_figure(folder: Path, name: str, title: str, alt: str) -> PageFigure:
    """A figure from a file in a folder; SVG, or PNG."""
    path = folder / name
    if path.suffix not in _TYPES or not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise StorageError(
            f"{folder} names the figure {name!r}, and there is no such SVG or PNG file in it",
            hint="run the study again",
        )
    return PageFigure(title, alt or title, _TYPES[path.suffix], path.read_bytes())


def draw_figures_inline(results: ResultSet) -> list[PageFigure]:
    """The reliability diagrams and risk–coverage curves of a report."""
    with TemporaryDirectory() as place:
        files = draw_figures(results, Path(place), (".svg",))
        return [
            PageFigure(
                title, f"{title}. A panel for each task and a line for each method.", _TYPES[".svg"], p.read_bytes()
            )
            for p, title in files.items()
        ]


def figure_html(figure: PageFigure, prefix: str, level: int) -> str:
    """A figure with its title above it, a heading of that level."""
    name, data = f"{prefix}-{slug(figure.title)}", base64.b64encode(figure.data).decode("ascii")
    return (
        f'<figure aria-labelledby="{name}"><figcaption id="{name}" role="heading" aria-level="{level}">'
        f"{escape(figure.title)}</figcaption>"
        f'<img alt="{escape(figure.alt)}" src="data:{figure.type};base64,{data}"></figure>'
    )


# -- A study as its folder tells it: the question, what the paper found, what was found here, and the figures.


@dataclass(frozen=True)
class PageStudy:
    """What a study's folder says, its figures read, and the results folders in it."""

    told: StudySummary
    figures: tuple[PageFigure, ...]
    results: tuple[Path, ...]
    # Where another study on the page has this name: the folder that tells them apart.
    within: str = ""

    @property
    def name(self) -> str:
        """Its name on the page."""
        return f"{self.told.name} ({self.within})" if self.within else self.told.name

    @property
    def title(self) -> str:
        """Its title on the page."""
        return f"{self.told.title} ({self.within})" if self.within else self.told.title

    @property
    def id(self) -> str:
        """The name of its part of the page."""
        return slug(f"study-{self.name}")


def read_study(folder: Path, results: tuple[Path, ...]) -> PageStudy:
    """The study of a folder; its figures have to be inside it."""
    told = StudySummary.read(folder)
    return PageStudy(
        told, tuple(read_figure(folder, each.file, each.title, each.alt) for each in told.figures), results
    )


def study_html(study: PageStudy, numbers: str) -> str:
    """A study's part of the page; ``numbers`` is the table behind it."""
    told = study.told
    findings = "".join(f"<p>{escape(line)}</p>" for line in told.findings)
    parts = [
        f'<section class="study" id="{study.id}" aria-labelledby="{study.id}-title">',
        f'<h3 id="{study.id}-title">{escape(study.title)}</h3>',
        f'<p class="question">{escape(told.question)}</p>' if told.question else "",
        f'<div class="finding">{findings}</div>' if findings else "",
        f'<p class="paper"><span class="tag">The paper</span> {escape(told.paper)}</p>' if told.paper else "",
        *(figure_html(figure, study.id, 4) for figure in study.figures),
        f"<details><summary>The numbers behind it</summary>{numbers}</details>" if numbers else "",
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


# -- Where the numbers come from: configuration, models, corpus, versions and time, as the manifests have them.


def origin_html(title: str, folder: Path) -> str:
    """A results folder's part of the page."""
    manifest = ResultsFolder.open(folder).manifest
    methods = {name.split("/")[1]: cell.get("method") for name, cell in manifest["cells"].items()}
    return "\n".join(
        [
            f'<section class="origin"><h3>{escape(title)}</h3>',
            facts_html(facts(manifest, folder)),
            _details("Versions", facts_html(_versions(manifest))),
            _details("Tasks", "".join(_task(name, entry) for name, entry in manifest["tasks"].items())),
            _details("Experiment", _code(manifest.get("experiment") or {})),
            _details("Methods", _code(methods)),
            "</section>",
        ]
    )


def facts(manifest: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Model, corpus and what was run, in words."""
    known = manifest["fingerprint"]
    lm, corpus = known.get("lm") or {}, known.get("corpus") or {}
    told = {
        "Language model": lm.get("name"),
        "Its weights": _short(lm.get("identity")),
        "Numbers and device": ", ".join(filter(None, [known.get("dtype"), known.get("device")])),
        "Corpus": f"{corpus['sentences']:,} sentences, {_short(corpus['identity'])}" if corpus else None,
        "Domains": ", ".join(corpus.get("domains") or []),
        "Encoder": corpus.get("encoder"),
        "Cells": f"{len(manifest['cells']):,}",
        "Complete": "yes" if manifest.get("complete") else "no: some predictions are missing",
        "Time": time_taken([folder]),
    }
    return {name: str(value) for name, value in told.items() if value}


def time_taken(folders: Iterable[Path]) -> str:
    """How long the rows took to compute, if the folders say so."""
    told = total_time(folders)
    return f"{duration(told.seconds)} for {told.rows:,} predictions" if told.rows else "not recorded"


def _versions(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {"zicl": str(manifest.get("zicl", "unknown")), **(manifest["fingerprint"].get("versions") or {})}


def _task(name: str, entry: Mapping[str, Any]) -> str:
    told = {
        "Labels": ", ".join(entry["labels"]),
        "Examples": f"{entry['examples']:,}",
        "Origin": entry.get("origin"),
        "Note": entry.get("note"),
    }
    return f"<h4>{escape(name)}</h4>{facts_html({key: str(value) for key, value in told.items() if value})}"


def _details(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _code(value: Any) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return f'<pre tabindex="0">{escape(text)}</pre>'


def _short(identity: Any) -> str:
    return str(identity)[:12] if identity else ""
