"""Figures as files: SVG and PNG, and the same file for the same numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
def plot_style() -> Iterator[None]:
    """Within the block figures are drawn and saved with zicl's settings."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure in the format of the path's suffix, whole or not at all."""
    with writing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], dpi=200, metadata=_METADATA[path.suffix])
    return path


# -- How a method's line looks: the same in every figure, and told apart without colours too.


# In this order for good: a method that moved would change its looks. New ones go to the end.
_METHODS = (
    "z-icl", "no-demos", "naive", "random-inputs", "icl-gold", "icl-random", "nearest-icl-gold", "nearest-icl-random",
    "logistic", "instruction", "diverse", "domain-random", "inputs-only", "z-icl+",
)  # fmt: skip
# The colours of Okabe and Ito, which the colour-blind can tell apart, without the yellow, which paper swallows.
_COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "d")
_HATCHES = ("//", "", "..", "xx", "\\\\", "++", "oo", "--", "||", "**", "OO")
Line = tuple[float, tuple[float, ...]] | str
_LINES: tuple[Line, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


@dataclass(frozen=True)
class Style:
    """A colour, a marker, a line and the hatching of a bar, as matplotlib names them."""

    colour: str
    marker: str
    line: Line
    hatch: str = ""


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """The style of every method; those an experiment defines come after the table's own, by name.

    >>> styles(["z-icl"])["z-icl"] == styles(["my-own", "z-icl"])["z-icl"]
    True
    """
    given = set(methods)
    order = (*_METHODS, *sorted(given - set(_METHODS)))
    return {name: _style(place) for place, name in enumerate(order) if name in given}


def _style(place: int) -> Style:
    """Markers repeat after twelve, and then with another line: no two of 48 are alike in black and white."""
    line = (place + place // len(_MARKERS)) % len(_LINES)
    hatch = _HATCHES[place % len(_HATCHES)]
    return Style(_COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)], _LINES[line], hatch)
