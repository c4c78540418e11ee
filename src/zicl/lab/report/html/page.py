"""One HTML file: style, script and data inside it, and a policy that lets nothing else in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

from zicl import __version__
from zicl._util.inline import source_hash
from zicl.lab.report.html.text import embedded, escape


@dataclass(frozen=True)
class Part:
    """A section of the page; ``inside`` are the names and titles of parts of it that the contents list too."""

    id: str
    title: str
    body: str
    inside: tuple[tuple[str, str], ...] = ()


def page_html(title: str, summary: str, parts: Sequence[Part], data: Any) -> str:
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
        data=embedded(data),
        script=script,
    )


def policy(style: str, script: str) -> str:
    """A content security policy: this style, this script, images inside the page, and no address at all."""
    return (
        f"default-src 'none'; style-src {source_hash(style)}; script-src {source_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def resource(name: str) -> str:
    """A file of the page as it ships with the package."""
    return (files("zicl.lab.report.html") / name).read_text(encoding="utf-8")


def _entry(part: Part) -> str:
    inside = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in part.inside)
    below = f"<ul>{inside}</ul>" if inside else ""
    return f'<li><a href="#{part.id}">{escape(part.title)}</a>{below}</li>'


def _section(part: Part) -> str:
    return (
        f'<section id="{part.id}" aria-labelledby="{part.id}-title">\n'
        f'<h2 id="{part.id}-title">{escape(part.title)}</h2>\n{part.body}\n</section>'
    )
