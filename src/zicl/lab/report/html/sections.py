"""The parts of a page as HTML: tables, figures, studies, and the configuration behind the results."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zicl._util.html import escape, slug
from zicl._util.progress import duration
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.evaluate.timing import total_time
from zicl.lab.report.html.sources import PageFigure, PageStudy
from zicl.lab.report.layout import EMPTY, Table, TableEntry, TableSection, format_number


def table_html(table: Table, prefix: str = "table") -> str:
    """Return a table with its notes; wide tables scroll inside a region that the keyboard reaches."""
    name = f"{prefix}-{slug(table.title)}"
    groups = "".join(
        f'<th colspan="{span}" scope="colgroup">{escape(title)}</th>' if title else f'<td colspan="{span}"></td>'
        for title, span in table.groups
    )
    columns = "".join(f'<th scope="col">{escape(column.name + column.marks)}</th>' for column in table.columns)
    body = "".join(_section_html(section, len(table.columns) + 1, signed=table.signed) for section in table.sections)
    return (
        f'<div class="table"><div class="scroll" role="region" tabindex="0" aria-labelledby="{name}">'
        f'<table><caption id="{name}"><span>{escape(table.title)}</span></caption>'
        f'<thead><tr class="groups"><td></td>{groups}</tr><tr><th scope="col">Method</th>{columns}</tr></thead>'
        f"{body}</table></div>{notes_html(table.notes)}</div>"
    )


def _section_html(section: TableSection, width: int, *, signed: bool) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(row.title)}</th>'
        + "".join(f"<td>{_entry_html(entry, signed=signed)}</td>" for entry in row.entries)
        + "</tr>"
        for row in section.rows
    )
    title = f'<th colspan="{width}" scope="rowgroup">{escape(section.title)}</th>'
    return f'<tbody><tr class="section">{title}</tr>{rows}</tbody>'


def _entry_html(entry: TableEntry, *, signed: bool) -> str:
    if entry.value is None:
        return escape(entry.text) or EMPTY
    text = format_number(entry.value, signed=signed)
    text = f"<strong>{text}</strong>" if entry.best else text
    if entry.deviation is not None:
        text += f' <span class="spread">± {entry.deviation:.1f}</span>'
    if entry.interval is not None:
        ends = ", ".join(format_number(end, signed=signed) for end in entry.interval)
        text += f' <span class="spread">[{ends}]</span>'
    return text + escape(entry.marks)


def notes_html(notes: Iterable[str]) -> str:
    """Return notes as a list."""
    lines = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{lines}</ul>' if lines else ""


def facts_html(facts: Mapping[str, str]) -> str:
    """Return names and values as a description list."""
    pairs = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{pairs}</dl>'


def figure_html(figure: PageFigure, prefix: str, level: int) -> str:
    """Return a figure with its title as a heading of a level, as an image: its content cannot reach the page."""
    name, data = f"{prefix}-{slug(figure.title)}", base64.b64encode(figure.data).decode("ascii")
    return (
        f'<figure aria-labelledby="{name}"><figcaption id="{name}" role="heading" aria-level="{level}">'
        f"{escape(figure.title)}</figcaption>"
        f'<img alt="{escape(figure.alt)}" src="data:{figure.type};base64,{data}"></figure>'
    )


def study_html(study: PageStudy, table: str) -> str:
    """Return a study: the question, the findings, the paper's result, the figures, and the table behind it."""
    summary = study.summary
    level = ["In brackets: 95 % intervals."] if any("[" in line for line in summary.findings) else []
    findings = "".join(f"<p>{escape(line)}</p>" for line in [*summary.findings, *level])
    parts = [
        f'<section class="study" id="{study.id}" aria-labelledby="{study.id}-title">',
        f'<h3 id="{study.id}-title">{escape(study.title)}</h3>',
        f'<p class="question">{escape(summary.question)}</p>' if summary.question else "",
        f'<div class="finding">{findings}</div>' if findings else "",
        f'<p class="paper"><span class="tag">The paper</span> {escape(summary.paper)}</p>' if summary.paper else "",
        *(figure_html(figure, study.id, 4) for figure in study.figures),
        f"<details><summary>The numbers behind it</summary>{table}</details>" if table else "",
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def origin_html(title: str, folder: Path) -> str:
    """Return the origin of a results folder: models, corpus, versions, tasks and configuration, from its manifest."""
    manifest = ResultsFolder.open(folder).manifest
    versions = manifest["fingerprint"].get("versions") or {}
    methods = {name.split("/")[1]: cell.get("method") for name, cell in manifest["cells"].items()}
    return "\n".join(
        [
            f'<section class="origin"><h3>{escape(title)}</h3>',
            facts_html(_known(_origin_facts(manifest, folder))),
            _details("Versions", facts_html({"zicl": str(manifest.get("zicl", "unknown")), **versions})),
            _details("Tasks", "".join(_task_html(name, entry) for name, entry in manifest["tasks"].items())),
            _details("Experiment", _json_html(manifest.get("experiment") or {})),
            _details("Methods", _json_html(methods)),
            "</section>",
        ]
    )


def _origin_facts(manifest: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    fingerprint = manifest["fingerprint"]
    lm, corpus = fingerprint.get("lm") or {}, fingerprint.get("corpus") or {}
    return {
        "Language model": lm.get("name"),
        "Its weights": _short(lm.get("identity")),
        "Numbers and device": ", ".join(filter(None, [fingerprint.get("dtype"), fingerprint.get("device")])),
        "Corpus": f"{corpus['sentences']:,} sentences, {_short(corpus['identity'])}" if corpus else None,
        "Domains": ", ".join(corpus.get("domains") or []),
        "Encoder": corpus.get("encoder"),
        "Cells": f"{len(manifest['cells']):,}",
        "Complete": "yes" if manifest.get("complete") else "no: some predictions are missing",
        "Time": compute_time([folder]),
    }


def compute_time(folders: Iterable[Path]) -> str:
    """Return how long the rows of all folders took, as far as recorded."""
    time = total_time(folders)
    return f"{duration(time.seconds)} for {time.rows:,} predictions" if time.rows else "not recorded"


def _task_html(name: str, entry: Mapping[str, Any]) -> str:
    facts = {
        "Labels": ", ".join(entry["labels"]),
        "Examples": f"{entry['examples']:,}",
        "Origin": entry.get("origin"),
        "Note": entry.get("note"),
    }
    return f"<h4>{escape(name)}</h4>{facts_html(_known(facts))}"


def _known(facts: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in facts.items() if value}


def _details(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _json_html(value: Any) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return f'<pre tabindex="0">{escape(text)}</pre>'


def _short(identity: Any) -> str:
    return str(identity)[:12] if identity else ""
