"""Figures as files: SVG and PNG, and the same file for the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zicl._util.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
# Whoever draws it and when: ids are not drawn at random, and files do not say when they were made.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "zicl", "font.size": 8, "axes.titlesize": 9, "hatch.linewidth": 0.7}
_METADATA = {".svg": {"Date": None}, ".png": {"Software": None}}


@contextmanager
def drawing() -> Iterator[None]:
    """Within the block figures are drawn and saved with zicl's settings."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def save(figure: Figure, path: Path) -> Path:
    """Write a figure in the format of the path's suffix, whole or not at all."""
    with writing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], dpi=200, metadata=_METADATA[path.suffix])
    return path
