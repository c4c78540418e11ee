"""Whether probabilities are reliable: NLL, Brier score, calibration error, and the diagrams of all methods.

Scores have one row per text and one column per label. A figure shows one section of the table: one panel per task,
one line per method.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.cells import Ints, ReportCell, ReportSection, ResultSet
from zicl.lab.report.layout import row_title, section_title, sort_methods, task_columns
from zicl.lab.report.plotting import SUFFIXES, Style, new_figure, plot_style, save_figure, styles
from zicl.score.calibration import Scores, log_softmax

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

BINS = 15
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class ProbabilityMetrics:
    """Means over seeds: negative log-likelihood in nats, Brier score from 0 to 2, calibration error in per cent."""

    nll: float
    brier: float
    ece: float


def has_probabilities(cell: ReportCell) -> bool:
    """Return whether the scores are meant as log-probabilities; cosines are not."""
    return bool(cell.present) and not cell.kind.sort.startswith("cosine")


def probability_metrics(cell: ReportCell) -> ProbabilityMetrics | None:
    """Return the metrics of a cell; None if it has no probabilities."""
    if not has_probabilities(cell):
        return None
    by_seed = [
        (nll(run.scores, run.gold), brier(run.scores, run.gold), ece(confidence(run.scores), run.gold == run.predicted))
        for run in cell.runs
    ]
    first, second, third = (float(value) for value in np.mean(by_seed, axis=0))
    return ProbabilityMetrics(first, second, 100 * third)


def probabilities(scores: Scores) -> Floats:
    """Return the softmax of each row."""
    return np.exp(log_softmax(scores))


def confidence(scores: Scores) -> Floats:
    """Return the highest probability of each row, rounded so that rounding errors make no difference."""
    highest: Floats = probabilities(scores).max(axis=-1).round(12)
    return highest


def nll(scores: Scores, gold: Ints) -> float:
    """Return the mean negative log-probability of the gold label; infinite if one was ruled out.

    >>> round(nll(np.log([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0])), 4)
    1.0397
    """
    return float(-log_softmax(scores)[np.arange(len(gold)), gold].mean())


def brier(scores: Scores, gold: Ints) -> float:
    """Return the squared error of the probabilities, summed over labels, averaged over texts.

    >>> round(brier(np.log([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0])), 4)
    0.8125
    """
    certain = np.eye(scores.shape[1])[gold]
    return float(((probabilities(scores) - certain) ** 2).sum(axis=1).mean())


def ece(confident: Floats, correct: Bools, bins: int = BINS) -> float:
    """Return the expected calibration error: the gap between confidence and accuracy of a bin, averaged over texts.

    >>> round(ece(np.array([0.6, 0.6, 0.9, 0.9]), np.array([True, False, True, True])), 4)
    0.1
    """
    binned = equal_mass(confident, correct, bins)
    return float(np.average(np.abs(binned.confidence - binned.accuracy), weights=binned.counts))


@dataclass(frozen=True, eq=False)
class ConfidenceBins:
    """Texts of similar confidence: their number, mean confidence and accuracy."""

    counts: Ints
    confidence: Floats
    accuracy: Floats


def equal_mass(confident: Floats, correct: Bools, bins: int = BINS) -> ConfidenceBins:
    """Return bins with equally many texts, except that texts of one confidence stay together in any order of rows.

    >>> equal_mass(np.array([0.9, 0.5, 0.5, 0.5]), np.array([True, True, False, True]), 2).counts.tolist()
    [3, 1]
    """
    ordered = np.sort(confident)
    first, end = (np.searchsorted(ordered, confident, side=side) for side in ("left", "right"))
    # Texts of one confidence go to the bin of their middle rank.
    numbers = (first + end) * bins // (2 * len(ordered))
    counts = np.bincount(numbers)
    filled = counts > 0
    means = [np.bincount(numbers, weights=values)[filled] / counts[filled] for values in (confident, correct * 1.0)]
    return ConfidenceBins(counts[filled], means[0], means[1])


def risk_coverage(confident: Floats, correct: Bools) -> tuple[Floats, Floats]:
    """Return the share of texts answered, most confident first (coverage), and the share of them that is wrong (risk).

    Texts of one confidence are answered together.

    >>> coverage, risk = risk_coverage(np.array([0.9, 0.8, 0.8, 0.6]), np.array([True, True, False, False]))
    >>> coverage.tolist(), risk.round(3).tolist()
    ([0.25, 0.75, 1.0], [0.0, 0.333, 0.5])
    """
    order = np.argsort(-confident, kind="stable")
    wrong, answered = np.cumsum(~correct[order]), np.arange(1, len(order) + 1)
    last = np.flatnonzero(np.append(np.diff(confident[order]) != 0, True))
    return answered[last] / len(order), wrong[last] / answered[last]


# -- diagrams ------------------------------------------------------------------------------------

_PANEL_SIZE, _PANELS_PER_ROW = 2.6, 3
# Shares of fewer texts than this are too noisy to draw as a line. For the same reason a diagram has fewer bins than
# the calibration error.
_MIN_TEXTS, _DIAGRAM_BINS = 20, 8


class CellPlot(NamedTuple):
    """A kind of figure: its file name, title, axes, the curve it draws of a method, and whether it has a diagonal."""

    name: str
    title: str
    x_label: str
    y_label: str
    curve: Callable[[Floats, Bools], tuple[Floats, Floats]]
    diagonal: bool = False


def _reliability_curve(confident: Floats, correct: Bools) -> tuple[Floats, Floats]:
    bins = equal_mass(confident, correct, max(1, min(_DIAGRAM_BINS, len(confident) // _MIN_TEXTS)))
    return bins.confidence, bins.accuracy


def _risk_curve(confident: Floats, correct: Bools) -> tuple[Floats, Floats]:
    coverage, risk = risk_coverage(confident, correct)
    enough = coverage * len(confident) >= min(_MIN_TEXTS, len(confident))
    return coverage[enough], risk[enough]


PLOTS = (
    CellPlot("reliability", "Reliability", "confidence", "share that is right", _reliability_curve, diagonal=True),
    CellPlot(
        "risk-coverage", "Risk and coverage", "coverage: share answered", "risk: share of it that is wrong", _risk_curve
    ),
)


def draw_figures(results: ResultSet, folder: Path, suffixes: Sequence[str] = SUFFIXES) -> dict[Path, str]:
    """Draw both figures of every section that has probabilities; return the files written and their titles."""
    by_method = styles(key.method for key in results.cells)
    written: dict[Path, str] = {}
    with plot_style():
        for section in results.sections:
            rows = plotted_rows(results, section)
            for plot in PLOTS if rows else ():
                title = f"{plot.title}: {section_title(section)}"
                figure = make_figure(results, title, rows, plot, by_method)
                for suffix in suffixes:
                    path = save_figure(figure, folder / f"{plot.name}-{section_file_name(section)}{suffix}")
                    written[path] = title
    return written


def section_file_name(section: ReportSection) -> str:
    """Return a section as a part of a file name.

    >>> section_file_name(ReportSection("hf:EleutherAI/gpt-j-6b", "task", "channel"))
    'channel-hf-EleutherAI-gpt-j-6b-task'
    """
    return re.sub(r"[^\w.]+", "-", f"{section.inference}-{section.model}-{section.template}").strip("-")


def plotted_rows(results: ResultSet, section: ReportSection) -> dict[str, dict[str, ReportCell]]:
    """Return the cells by method and task that a section's figures show.

    The majority has the same confidence for every text, and no line.
    """
    if section.inference == NO_INFERENCE:
        return {}
    methods = {name: (traits, results.row(section, name)) for name, traits in results.methods(section).items()}
    methods |= results.without_prompt(section)
    rows, shown = {}, {}
    for name, (traits, row) in methods.items():
        cells = {task: cell for task, cell in row.items() if has_probabilities(cell) and traits.sort != "majority"}
        if cells:
            rows[name], shown[name] = cells, traits
    return {name: rows[name] for name in sort_methods(shown)}


def make_figure(
    results: ResultSet,
    title: str,
    rows: dict[str, dict[str, ReportCell]],
    plot: CellPlot,
    by_method: dict[str, Style],
) -> Figure:
    """Draw the panels of a section with a common legend."""
    columns = [column.name for column in task_columns(results.tasks, averages=False)]
    tasks = [task for task in columns if any(task in row for row in rows.values())]
    across = min(_PANELS_PER_ROW, len(tasks))
    down = math.ceil(len(tasks) / across)
    # Space for the title above and the legend of two columns below.
    extra = 0.5 + 0.17 * math.ceil(len(rows) / 2)
    figure = new_figure(_PANEL_SIZE * max(across, 2), _PANEL_SIZE * down + extra)
    figure.suptitle(title)
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for panel in panels[len(tasks) :]:
        panel.set_visible(False)
    lines = {}
    for number, (panel, task) in enumerate(zip(panels, tasks, strict=False)):
        panel.set(title=task, xlabel=plot.x_label, ylabel="" if number % across else plot.y_label, xlim=(0, 1))
        panel.set_box_aspect(1)
        if plot.diagonal:
            panel.set_ylim(0, 1)
            panel.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, zorder=0)
        for position, (name, row) in enumerate(rows.items()):
            if task in row:
                lines[name] = _draw_line(panel, row[task], plot, by_method[name], position)
    # The panels share this axis.
    panels[0].set_ylim(bottom=0)
    drawn = [name for name in rows if name in lines]
    titles = [row_title(next(iter(rows[name].values())).kind) for name in drawn]
    figure.legend([lines[name] for name in drawn], titles, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_line(panel: Axes, cell: ReportCell, plot: CellPlot, style: Style, position: int) -> Line2D:
    """Draw one method on one task, with the rows of all seeds together."""
    confident = np.concatenate([confidence(run.scores) for run in cell.runs])
    correct = np.concatenate([run.gold == run.predicted for run in cell.runs])
    x, y = plot.curve(confident, correct)
    # A curve has one point per text: a few markers are enough, and at other places for each method.
    markers = (0.01 + 0.03 * (position % 6), 0.18) if len(x) > 15 else None
    (line,) = panel.plot(
        x, y, color=style.colour, marker=style.marker, linestyle=style.line, markevery=markers, markersize=4,
        markerfacecolor="white", linewidth=1.1, clip_on=False,
    )  # fmt: skip
    return line
