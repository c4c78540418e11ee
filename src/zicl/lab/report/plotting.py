"""Draw figures with matplotlib: reproducible SVG and PNG files, and one style per method.

matplotlib is an optional extra, imported only here and inside ``plot_style``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zicl._util.files import atomic_write
from zicl._util.process import require_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
# The same numbers give the same file: no random ids, no date.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "zicl", "font.size": 8, "axes.titlesize": 9, "hatch.linewidth": 0.7}
_METADATA = {".svg": {"Date": None}, ".png": {"Software": None}}


def check_plotting() -> None:
    """Check that figures can be drawn, without importing matplotlib: commands call this before they compute."""
    require_extra("plot", "drawing figures", "matplotlib")


@contextmanager
def plot_style() -> Iterator[None]:
    """Draw and save figures with the settings of zicl inside the block."""
    check_plotting()
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, with constrained layout."""
    check_plotting()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure atomically, in the format of the path's suffix."""
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], dpi=200, metadata=_METADATA[path.suffix])
    return path


# -- styles: the same in every figure, and distinguishable without colours ------------------------

# Append new methods: a method that moved would change its style.
_METHODS = (
    "z-icl", "no-demos", "naive", "random-inputs", "icl-gold", "icl-random", "nearest-icl-gold", "nearest-icl-random",
    "logistic", "instruction", "diverse", "domain-random", "inputs-only", "z-icl+cosine", "encoder", "z-icl+",
)  # fmt: skip
# The colour-blind safe palette of Okabe and Ito, without yellow, which is too light on paper.
_COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "d")
_HATCHES = ("//", "", "..", "xx", "\\\\", "++", "oo", "--", "||", "**", "OO")
Line = tuple[float, tuple[float, ...]] | str
_LINES: tuple[Line, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


@dataclass(frozen=True)
class Style:
    """The colour, marker and line of a method, and the hatch of its bars, as matplotlib names them."""

    colour: str
    marker: str
    line: Line
    hatch: str = ""


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """Return the style of every method; those that an experiment defines come after the known ones, by name.

    >>> styles(["z-icl"])["z-icl"] == styles(["my-method", "z-icl"])["z-icl"]
    True
    """
    given = set(methods)
    order = (*_METHODS, *sorted(given - set(_METHODS)))
    return {name: _style(number) for number, name in enumerate(order) if name in given}


def _style(number: int) -> Style:
    """Return a style; markers repeat after twelve with another line, so that 48 styles differ in black and white."""
    line = (number + number // len(_MARKERS)) % len(_LINES)
    hatch = _HATCHES[number % len(_HATCHES)]
    return Style(_COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)], _LINES[line], hatch)
