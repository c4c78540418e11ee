"""The figures of studies: panels of bars or lines with intervals, as plain values, and drawn as SVG and PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zicl.lab.report.plotting import SUFFIXES, Style, plot_style, save_figure
from zicl.lab.report.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The y axis of most figures.
ACCURACY = "accuracy, per cent"

# Inches: the height of a panel, its least width, and the margin around the legend.
_HEIGHT, _WIDTH, _MARGIN = 2.6, 3.4, 0.1
# The least width of a bar in inches, and the share of a group's width that its bars fill.
_BAR, _GROUP = 0.13, 0.8
# The horizontal distance between the points of two lines, as a share of the axis.
_OFFSET = 0.01
# The share of white in a bar's colour, so that its hatching is visible.
_TINT = 0.6


@dataclass(frozen=True)
class Point:
    """A number with its interval; ``x`` is the name of a group of bars, or a number on the axis."""

    x: str | float
    value: Interval


@dataclass(frozen=True)
class Series:
    """Bars or points of one style, with one entry in the legend."""

    title: str
    style: Style
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """Series that share a pair of axes."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class StudyFigure:
    """A figure as plain values; ``name`` is the name of its files."""

    name: str
    title: str
    xlabel: str
    ylabel: str
    panels: tuple[Panel, ...]
    kind: Literal["bars", "lines"] = "bars"
    log_x: bool = False

    @property
    def alt(self) -> str:
        """Describe the figure in words: every number with its interval."""
        return " ".join(
            f"{panel.title}, {series.title}: {', '.join(_in_words(point) for point in series.points)}."
            for panel in self.panels
            for series in panel.series
        )


def _in_words(point: Point) -> str:
    x = point.x if isinstance(point.x, str) else f"{point.x:g}"
    return f"{x} {point.value.estimate:.1f} ({point.value.low:.1f} to {point.value.high:.1f})"


def draw_figure(figure: StudyFigure, folder: Path) -> list[Path]:
    """Draw a figure into a folder and return the files written: none if there is nothing to show."""
    if not figure.panels:
        return []
    with plot_style():
        drawn = plot_figure(figure)
        return [save_figure(drawn, folder / f"{figure.name}{suffix}") for suffix in SUFFIXES]


def plot_figure(figure: StudyFigure) -> Figure:
    """Return the matplotlib figure: panels side by side, one legend below."""
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(point.x for panel in figure.panels for each in panel.series for point in each.points))
    titles = dict.fromkeys(series.title for panel in figure.panels for series in panel.series)
    width = max(_WIDTH, _BAR * len(titles) * len(groups) / _GROUP) if figure.kind == "bars" else _WIDTH
    legend_height = 0.6 + 0.17 * math.ceil(len(titles) / 2)
    size = (max(4.4, width * len(figure.panels)), _HEIGHT + legend_height)
    drawn = Figure(figsize=size, layout="constrained")
    drawn.suptitle(figure.title)
    handles: dict[str, Any] = {}
    all_axes = drawn.subplots(1, len(figure.panels), squeeze=False, sharey=True)[0]
    for axes, panel in zip(all_axes, figure.panels, strict=True):
        axes.set(title=panel.title, xlabel=figure.xlabel)
        axes.grid(axis="y", color="0.85", linewidth=0.6)
        axes.set_axisbelow(True)
        plotted = _plot_bars(axes, panel, groups) if figure.kind == "bars" else _plot_lines(axes, panel, figure)
        handles = {**plotted, **handles}
    drawn.axes[0].set_ylabel(figure.ylabel)
    lows = [point.value.low for panel in figure.panels for series in panel.series for point in series.points]
    # Bars begin at zero; lines need not, and differences may be negative.
    if figure.kind == "bars" and lows and min(lows) >= 0:
        drawn.axes[0].set_ylim(bottom=0)
    order = [title for title in titles if title in handles]
    drawn.legend([handles[title] for title in order], order, loc="outside lower center", ncols=2, frameon=False)
    _widen_to_legend(drawn)
    return drawn


def _widen_to_legend(drawn: Figure) -> None:
    """Make the figure at least as wide as its legend, which would otherwise be cut off."""
    drawn.draw_without_rendering()
    needed = drawn.legends[0].get_window_extent().width / drawn.dpi + 2 * _MARGIN
    width, height = drawn.get_size_inches()
    drawn.set_size_inches(max(width, needed), height)


def _plot_bars(axes: Axes, panel: Panel, groups: list[str | float]) -> dict[str, Any]:
    """Plot the bars of each group side by side, without gaps for series that a group lacks."""
    handles: dict[str, Any] = {}
    members = {group: [each for each in panel.series if any(p.x == group for p in each.points)] for group in groups}
    width = _GROUP / max(len(each) for each in members.values())
    for series in panel.series:
        for point in series.points:
            beside = members[point.x]
            x = groups.index(point.x) + (beside.index(series) - (len(beside) - 1) / 2) * width
            handles[series.title] = axes.bar(
                x, point.value.estimate, width, yerr=_errors([point]), color=_tint(series.style.colour), capsize=2,
                edgecolor=series.style.colour, hatch=series.style.hatch, linewidth=0.8,
                error_kw={"elinewidth": 0.9, "ecolor": "black"},
            )  # fmt: skip
    axes.set_xticks(range(len(groups)), [str(group) for group in groups])
    axes.axhline(0, color="black", linewidth=0.6)
    return handles


def _plot_lines(axes: Axes, panel: Panel, figure: StudyFigure) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    if figure.log_x:
        axes.set_xscale("log")
    ticks = sorted({float(point.x) for series in panel.series for point in series.points})
    for number, series in enumerate(panel.series):
        handles[series.title] = axes.errorbar(
            [_shifted(float(point.x), number, ticks, figure) for point in series.points],
            [point.value.estimate for point in series.points],
            yerr=_errors(series.points), color=series.style.colour, marker=series.style.marker,
            linestyle=series.style.line, markersize=4, markerfacecolor="white", linewidth=1.1, capsize=2,
        )  # fmt: skip
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    return handles


def _shifted(x: float, number: int, ticks: list[float], figure: StudyFigure) -> float:
    """Move the points of each further line a little to the right, so that no interval hides another."""
    if figure.log_x:
        return x * math.exp(math.log(ticks[-1] / ticks[0]) * _OFFSET * number)
    return x + (ticks[-1] - ticks[0]) * _OFFSET * number


def _errors(points: Sequence[Point]) -> Any:
    values = [point.value for point in points]
    return np.array([[v.estimate - v.low for v in values], [v.high - v.estimate for v in values]])


def _tint(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(_TINT + (1 - _TINT) * part for part in to_rgb(colour))
