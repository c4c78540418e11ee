"""The page of a map: one HTML file with plotly, the texts, filters, and a table for those who see no picture."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any

from zicl._util.html import csp_hash, escape, json_in_html
from zicl._util.process import __version__


@lru_cache(maxsize=1)
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def render_map(title: str, about: str, data: dict[str, Any]) -> str:
    """Return the page; ``data`` is what its script draws."""
    place = files("zicl.apps.map")
    style, script = (place.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    plotly = _plotly()
    # The picture's library compiles its shaders' code, and styles what it draws; nothing is ever fetched.
    policy = (
        f"default-src 'none'; script-src {csp_hash(plotly)} {csp_hash(script)} 'unsafe-eval'; "
        "style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
    )
    return Template(place.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        policy=escape(policy),
        title=escape(title),
        about=escape(about),
        style=style,
        plotly=plotly,
        data=json_in_html(data),
        script=script,
        version=escape(__version__),
    )
