"""Tables as HTML: captions, and headings that say which rows and columns they are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zicl.lab.report.formats import NOTHING, number
from zicl.lab.report.html.text import escape, slug
from zicl.lab.report.table import Entry, Section, Table


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


def _section(section: Section, width: int, *, signed: bool) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(row.title)}</th>'
        + "".join(f"<td>{_entry(entry, signed=signed)}</td>" for entry in row.entries)
        + "</tr>"
        for row in section.rows
    )
    title = f'<th colspan="{width}" scope="rowgroup">{escape(section.title)}</th>'
    return f'<tbody><tr class="section">{title}</tr>{rows}</tbody>'


def _entry(entry: Entry, *, signed: bool) -> str:
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
