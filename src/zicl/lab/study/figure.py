"""A figure as plain values: panels of bars or lines with intervals. How it is drawn is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zicl.lab.report.bootstrap import Estimate
from zicl.lab.report.style import Style

# What most figures show.
ACCURACY = "accuracy, per cent"


@dataclass(frozen=True)
class Point:
    """A number and its interval, at a place: a group of bars by name, or a number on the axis."""

    at: str | float
    value: Estimate


@dataclass(frozen=True)
class Series:
    """What has one look and one line in the legend."""

    title: str
    look: Style
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """Series side by side."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Figure:
    """A figure: ``name`` is its file's, ``across`` and ``up`` its axes'; ``logarithmic`` is the one across."""

    name: str
    title: str
    across: str
    up: str
    panels: tuple[Panel, ...]
    kind: Literal["bars", "lines"] = "bars"
    logarithmic: bool = False

    @property
    def alt(self) -> str:
        """The figure in words: every number with its interval."""
        return " ".join(
            f"{panel.title}, {series.title}: {', '.join(_said(point) for point in series.points)}."
            for panel in self.panels
            for series in panel.series
        )


@dataclass(frozen=True)
class Drawn:
    """A figure that is drawn already: its file in the study's folder, and what it shows."""

    file: str
    title: str
    alt: str


def _said(point: Point) -> str:
    at = point.at if isinstance(point.at, str) else f"{point.at:g}"
    return f"{at} {point.value.estimate:.1f} ({point.value.low:.1f} to {point.value.high:.1f})"
