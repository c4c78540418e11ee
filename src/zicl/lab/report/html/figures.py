"""Figures inside the page, as images of their own: nothing in one of them can reach the page around it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from zicl.exceptions import StorageError
from zicl.lab.report.cells import Results
from zicl.lab.report.figures import draw_figures
from zicl.lab.report.html.text import escape, slug

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True)
class Figure:
    """An image with its title, and its contents in words for who cannot see it."""

    title: str
    alt: str
    type: str
    data: bytes


def read_figure(folder: Path, name: str, title: str, alt: str) -> Figure:
    """A figure from a file in a folder; SVG, or PNG."""
    path = folder / name
    if path.suffix not in _TYPES or not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise StorageError(
            f"{folder} names the figure {name!r}, and there is no such SVG or PNG file in it",
            hint="run the study again",
        )
    return Figure(title, alt or title, _TYPES[path.suffix], path.read_bytes())


def drawn(results: Results) -> list[Figure]:
    """The reliability diagrams and risk–coverage curves of a report."""
    with TemporaryDirectory() as place:
        files = draw_figures(results, Path(place), (".svg",))
        return [
            Figure(title, f"{title}. A panel for each task and a line for each method.", _TYPES[".svg"], p.read_bytes())
            for p, title in files.items()
        ]


def figure_html(figure: Figure, prefix: str, level: int) -> str:
    """A figure with its title above it, a heading of that level."""
    name, data = f"{prefix}-{slug(figure.title)}", base64.b64encode(figure.data).decode("ascii")
    return (
        f'<figure aria-labelledby="{name}"><figcaption id="{name}" role="heading" aria-level="{level}">'
        f"{escape(figure.title)}</figcaption>"
        f'<img alt="{escape(figure.alt)}" src="data:{figure.type};base64,{data}"></figure>'
    )
