"""A figure as plain values: panels of bars or lines with intervals. How it is drawn is elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zicl.lab.report.plotting import SUFFIXES, Style, plot_style, save_figure
from zicl.lab.report.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# What most figures show.
ACCURACY = "accuracy, per cent"


@dataclass(frozen=True)
class Point:
    """A number and its interval, at a place: a group of bars by name, or a number on the axis."""

    at: str | float
    value: Interval


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
class StudyFigure:
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


def _said(point: Point) -> str:
    at = point.at if isinstance(point.at, str) else f"{point.at:g}"
    return f"{at} {point.value.estimate:.1f} ({point.value.low:.1f} to {point.value.high:.1f})"


# -- Drawing a study's figures: SVG and PNG, told apart without colours too, an interval on every number.


_HIGH, _WIDE, _MARGIN = 2.6, 3.4, 0.1
# How wide a bar is at least, in inches, and how much of its group's width the bars take.
_BAR, _GROUP = 0.13, 0.8
# How far the points of the next line stand aside, as a share of the axis.
_ASIDE = 0.01
# How much of a bar's colour is white, so that its hatching can be seen.
_TINT = 0.6


def draw_figure(figure: StudyFigure, folder: Path) -> list[Path]:
    """Draw a figure into a folder; the files written, none if there is nothing to show."""
    if not figure.panels:
        return []
    with plot_style():
        canvas = make_canvas(figure)
        return [save_figure(canvas, folder / f"{figure.name}{suffix}") for suffix in SUFFIXES]


def make_canvas(figure: StudyFigure) -> Canvas:
    """The figure as matplotlib has it: panels side by side, one legend below."""
    from matplotlib.figure import Figure as Canvas

    groups = list(dict.fromkeys(point.at for panel in figure.panels for each in panel.series for point in each.points))
    titles = dict.fromkeys(series.title for panel in figure.panels for series in panel.series)
    wide = max(_WIDE, _BAR * len(titles) * len(groups) / _GROUP) if figure.kind == "bars" else _WIDE
    room = 0.6 + 0.17 * math.ceil(len(titles) / 2)
    size = (max(4.4, wide * len(figure.panels)), _HIGH + room)
    canvas = Canvas(figsize=size, layout="constrained")
    canvas.suptitle(figure.title)
    shown: dict[str, Any] = {}
    for axes, panel in zip(
        canvas.subplots(1, len(figure.panels), squeeze=False, sharey=True)[0], figure.panels, strict=True
    ):
        axes.set(title=panel.title, xlabel=figure.across)
        axes.grid(axis="y", color="0.85", linewidth=0.6)
        axes.set_axisbelow(True)
        drawn = _bars(axes, panel, groups) if figure.kind == "bars" else _lines(axes, panel, figure)
        shown = {**drawn, **shown}
    canvas.axes[0].set_ylabel(figure.up)
    _bottom(canvas.axes[0], figure)
    order = [title for title in titles if title in shown]
    canvas.legend([shown[title] for title in order], order, loc="outside lower center", ncols=2, frameon=False)
    _widen(canvas)
    return canvas


def _widen(canvas: Canvas) -> None:
    """At least as wide as the legend, which would run over the edges else."""
    canvas.draw_without_rendering()
    needed = canvas.legends[0].get_window_extent().width / canvas.dpi + 2 * _MARGIN
    wide, high = canvas.get_size_inches()
    canvas.set_size_inches(max(wide, needed), high)


def _bars(axes: Axes, panel: Panel, groups: list[str | float]) -> dict[str, Any]:
    """Bars of one group side by side; those that a group has none of leave no gap."""
    drawn: dict[str, Any] = {}
    members = {at: [each for each in panel.series if any(p.at == at for p in each.points)] for at in groups}
    width = _GROUP / max(len(each) for each in members.values())
    for series in panel.series:
        for point in series.points:
            own = members[point.at]
            at = groups.index(point.at) + (own.index(series) - (len(own) - 1) / 2) * width
            drawn[series.title] = axes.bar(
                at, point.value.estimate, width, yerr=_error([point]), color=_tint(series.look.colour), capsize=2,
                edgecolor=series.look.colour, hatch=series.look.hatch, linewidth=0.8,
                error_kw={"elinewidth": 0.9, "ecolor": "black"},
            )  # fmt: skip
    axes.set_xticks(range(len(groups)), [str(group) for group in groups])
    axes.axhline(0, color="black", linewidth=0.6)
    return drawn


def _lines(axes: Axes, panel: Panel, figure: StudyFigure) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    if figure.logarithmic:
        axes.set_xscale("log")
    places = sorted({float(point.at) for series in panel.series for point in series.points})
    for number, series in enumerate(panel.series):
        drawn[series.title] = axes.errorbar(
            [_beside(float(point.at), number, places, figure) for point in series.points],
            [point.value.estimate for point in series.points],
            yerr=_error(series.points), color=series.look.colour, marker=series.look.marker,
            linestyle=series.look.line, markersize=4, markerfacecolor="white", linewidth=1.1, capsize=2,
        )  # fmt: skip
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    return drawn


def _beside(place: float, number: int, places: list[float], figure: StudyFigure) -> float:
    """Each line's points a little to the right of the line's before it, so that no interval hides another."""
    if figure.logarithmic:
        return place * math.exp(math.log(places[-1] / places[0]) * _ASIDE * number)
    return place + (places[-1] - places[0]) * _ASIDE * number


def _error(points: tuple[Point, ...] | list[Point]) -> Any:
    values = [point.value for point in points]
    return np.array([[v.estimate - v.low for v in values], [v.high - v.estimate for v in values]])


def _bottom(axes: Axes, figure: StudyFigure) -> None:
    """Bars begin at zero; lines need not, and differences may go below it."""
    lows = [point.value.low for panel in figure.panels for series in panel.series for point in series.points]
    if figure.kind == "bars" and lows and min(lows) >= 0:
        axes.set_ylim(bottom=0)


def _tint(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(_TINT + (1 - _TINT) * part for part in to_rgb(colour))
