"""Reliability diagrams and risk–coverage curves: a figure a section of the table, a panel a task, a line a method."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.cells import ReportCell, ReportSection, ResultSet
from zicl.lab.report.plotting import SUFFIXES, Style, plot_style, save_figure, styles
from zicl.lab.report.reliability import Floats, confidence, equal_mass, has_probabilities, risk_coverage
from zicl.lab.report.table import ordered, row_title, section_title, task_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_SIDE, _ACROSS = 2.6, 3
_GREY = "0.6"
# The share that is right among fewer texts than this jumps about, and a line of such shares cannot be read. For the
# same reason a diagram has fewer bins than the calibration error.
_FEWEST, _BINS = 20, 8


class CellPlot(NamedTuple):
    """A sort of figure: its file's name, its axes, what it draws of a method, and whether it has a diagonal."""

    name: str
    title: str
    across: str
    up: str
    curve: Callable[[Floats, NDArray[np.bool_]], tuple[Floats, Floats]]
    diagonal: bool = False


def _reliability(confident: Floats, right: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    bins = equal_mass(confident, right, max(1, min(_BINS, len(confident) // _FEWEST)))
    return bins.confidence, bins.accuracy


def _risk(confident: Floats, right: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    coverage, risk = risk_coverage(confident, right)
    enough = coverage * len(confident) >= min(_FEWEST, len(confident))
    return coverage[enough], risk[enough]


PLOTS = (
    CellPlot("reliability", "Reliability", "confidence", "share that is right", _reliability, diagonal=True),
    CellPlot(
        "risk-coverage", "Risk and coverage", "coverage: share answered", "risk: share of it that is wrong", _risk
    ),
)


def draw_figures(results: ResultSet, folder: Path, suffixes: Sequence[str] = SUFFIXES) -> dict[Path, str]:
    """Draw what can be drawn of every section, as SVG and PNG; the files written, and what each shows."""
    looks = styles(key.method for key in results.cells)
    written: dict[Path, str] = {}
    with plot_style():
        for block in results.blocks:
            cells = _drawn(results, block)
            for plot in PLOTS if cells else ():
                figure = _figure(results, block, cells, plot, looks)
                for suffix in suffixes:
                    written[save_figure(figure, folder / f"{plot.name}-{file_name(block)}{suffix}")] = _title(
                        plot, block
                    )
    return written


def _title(plot: CellPlot, block: ReportSection) -> str:
    return f"{plot.title}: {section_title(block)}"


def file_name(block: ReportSection) -> str:
    """A section as a part of a file's name.

    >>> file_name(ReportSection("hf:EleutherAI/gpt-j-6b", "task", "channel"))
    'channel-hf-EleutherAI-gpt-j-6b-task'
    """
    return re.sub(r"[^\w.]+", "-", f"{block.inference}-{block.model}-{block.template}").strip("-")


def _drawn(results: ResultSet, block: ReportSection) -> dict[str, dict[str, ReportCell]]:
    """The methods of a section and the controls beside it; the majority is as sure of every text, and no line."""
    if block.inference == NO_INFERENCE:
        return {}
    own = [(kind, results.row(block, name)) for name, kind in results.methods(block).items()]
    found, kinds = {}, {}
    for kind, row in (*own, *results.beside(block)):
        cells = {task: cell for task, cell in row.items() if has_probabilities(cell) and kind.sort != "majority"}
        if cells:
            name = next(iter(cells.values())).key.method
            found[name], kinds[name] = cells, kind
    return {name: found[name] for name in ordered(kinds)}


def _figure(
    results: ResultSet,
    block: ReportSection,
    cells: dict[str, dict[str, ReportCell]],
    plot: CellPlot,
    looks: dict[str, Style],
) -> Figure:
    from matplotlib.figure import Figure

    every = [column.name for column in task_columns(results.tasks, averages=False)]
    tasks = [task for task in every if any(task in row for row in cells.values())]
    across = min(_ACROSS, len(tasks))
    down = math.ceil(len(tasks) / across)
    # Room for the title above and the legend of two columns below.
    room = 0.5 + 0.17 * math.ceil(len(cells) / 2)
    figure = Figure(figsize=(_SIDE * max(across, 2), _SIDE * down + room), layout="constrained")
    figure.suptitle(_title(plot, block))
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for panel in panels[len(tasks) :]:
        panel.set_visible(False)
    lines = {}
    for number, (panel, task) in enumerate(zip(panels, tasks, strict=False)):
        _panel(panel, task, plot)
        panel.set_ylabel("" if number % across else plot.up)
        for place, (name, row) in enumerate(cells.items()):
            if task in row:
                lines[name] = _line(panel, row[task], plot, looks[name], place)
    # The panels share this axis.
    panels[0].set_ylim(bottom=0)
    shown = [name for name in cells if name in lines]
    titles = [row_title(next(iter(cells[name].values())).kind) for name in shown]
    figure.legend([lines[name] for name in shown], titles, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _panel(panel: Axes, task: str, plot: CellPlot) -> None:
    panel.set(title=task, xlabel=plot.across, xlim=(0, 1))
    panel.set_box_aspect(1)
    if plot.diagonal:
        panel.set_ylim(0, 1)
        panel.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, zorder=0)


def _line(panel: Axes, cell: ReportCell, plot: CellPlot, look: Style, place: int) -> Line2D:
    """One method on one task, the rows of all seeds together."""
    confident = np.concatenate([confidence(run.scores) for run in cell.runs])
    right = np.concatenate([run.gold == run.predicted for run in cell.runs])
    across, up = plot.curve(confident, right)
    # A curve has a point for every text: a few markers are enough, and not all methods' at the same places.
    every = (0.01 + 0.03 * (place % 6), 0.18) if len(across) > 15 else None
    (line,) = panel.plot(
        across, up, color=look.colour, marker=look.marker, linestyle=look.line, markevery=every, markersize=4,
        markerfacecolor="white", linewidth=1.1, clip_on=False,
    )  # fmt: skip
    return line
