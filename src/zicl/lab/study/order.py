"""How much accuracy varies over draws of labels, apart from draws of sentences: a crossed design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from zicl._util.random import rng
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.report.cells import ReportCell, ReportSection, common_seeds
from zicl.lab.report.statistics import DRAWS, Interval, draw_counts
from zicl.lab.study.base import Arms, Study, StudyInputs, StudyOptions, StudyPart
from zicl.lab.study.figures import ACCURACY, Panel, Point, Series, StudyFigure
from zicl.lab.study.method_grid import changed, grid_method, method_style, style_of
from zicl.lab.study.outcome import StudyOutcome, points

Right = NDArray[np.float64]


class VarianceComponents(NamedTuple):
    """Standard deviations of accuracy, in points: over draws of labels, over draws of sentences, and the difference."""

    labels: Interval
    sentences: Interval
    difference: Interval


def variance_components(tasks: Sequence[Sequence[ReportCell]]) -> VarianceComponents | None:
    """For each task a method a draw of labels, with a run a draw of sentences; None with fewer than two of either.

    Both are drawn for every text by itself: the variance of accuracy is the mean variance of an example, over their
    number. An example with all its draws is what is drawn anew for the intervals.
    """
    tables = [table for cells in tasks if (table := _table(cells)) is not None]
    if not tables:
        return None
    variances = [_variances(table) for table in tables]
    found = _deviations([each.mean(axis=1) / each.shape[1] for each in variances])
    drawn = _deviations([_resampled(each, number) for number, each in enumerate(variances)])
    pairs = ((found[0], drawn[0]), (found[1], drawn[1]), (found[0] - found[1], drawn[0] - drawn[1]))
    return VarianceComponents(*(_estimate(float(np.squeeze(value)), values) for value, values in pairs))


def _table(cells: Sequence[ReportCell]) -> Right | None:
    """Which predictions are right, (draws of labels, seeds, examples)."""
    seeds = common_seeds([[run.seed for run in cell.runs] for cell in cells])
    if len(cells) < 2 or len(seeds) < 2:
        return None
    runs = [[next(run for run in cell.runs if run.seed == seed) for seed in seeds] for cell in cells]
    shared = reduce(np.intersect1d, [run.examples for row in runs for run in row])
    right = [[(run.gold == run.predicted)[np.searchsorted(run.examples, shared)] for run in row] for row in runs]
    return np.array(right, dtype=np.float64) if len(shared) > 1 else None


def _variances(table: Right) -> Right:
    """Of every example the variance over draws of labels, and over draws of sentences; the mean over the others."""
    return np.array([np.var(table, axis=axis, ddof=1).mean(axis=0) for axis in (0, 1)])


def _resampled(variances: Right, number: int) -> Right:
    """The variance of accuracy with the examples drawn anew, (2, draws of examples)."""
    size = variances.shape[1]
    counts = draw_counts(rng(0, number, "variance"), DRAWS, size)
    return np.asarray(variances @ counts.T / size**2)


def _deviations(variances: Sequence[Right]) -> Right:
    """Standard deviations in points, of the mean variance over tasks."""
    return np.asarray(100 * np.sqrt(np.maximum(np.mean(variances, axis=0), 0)))


def _estimate(value: float, drawn: Right) -> Interval:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(value, min(float(low), value), max(float(high), value), float("nan"))


# -- Order: where the nearest demonstrations stand; and how much draws of labels and draws of sentences matter.


_ORDERS = {"nearest-last": "nearest last", "nearest-first": "nearest first", "shuffled": "shuffled"}
_METHODS = {"naive": "Nearest, original labels", "z-icl": "Z-ICL"}


class OrderOptions(StudyOptions):
    """``draws`` of labels for each draw of sentences, of which there is one a seed."""

    draws: int = Field(3, ge=2)


def _name(method: str, order: str) -> str:
    return method if order == "nearest-last" else f"{method}-{order}"


def _drawn(options: OrderOptions) -> list[str]:
    return [f"diverse-synonyms-labels-{draw}" for draw in range(1, options.draws + 1)]


def _parts(options: OrderOptions, _: StudyInputs) -> list[StudyPart]:
    orders: Arms = {
        _name(method, order): EXPERIMENT_METHODS[method]
        if order == "nearest-last"
        else changed(EXPERIMENT_METHODS[method], title, retrieval={"order": order})
        for method in _METHODS
        for order, title in _ORDERS.items()
    }
    # Diverse nearest, since the other ways draw no sentences.
    base = grid_method("diverse", "synonyms")
    draws = {
        name: changed(base, f"labels drawn with seed {draw}", labelling={"seed": draw})
        for draw, name in enumerate(_drawn(options), start=1)
    }
    return [StudyPart("orders", orders), StudyPart("variance", draws)]


def _figures(options: OrderOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def orders(block: ReportSection) -> Sequence[Series]:
        return [
            outcome.bars(
                block, title, style_of(method), {said: _name(method, order) for order, said in _ORDERS.items()}
            )
            for method, title in _METHODS.items()
        ]

    panels = []
    for block in outcome.blocks:
        found = _spreads(options, outcome, block)
        if found is not None:
            # Both are of diverse nearest, and have its colour.
            plain = method_style("diverse", "synonyms")
            shown = (("labels", plain, found.labels), ("sentences", replace(plain, hatch="--"), found.sentences))
            series = [Series(f"draws of {what}", style, (Point(what, value),)) for what, style, value in shown]
            panels.append(Panel(outcome.name(block), tuple(series)))
    return [
        StudyFigure("order", "Where the nearest demonstrations stand", "", ACCURACY, outcome.panels(orders)),
        StudyFigure("variance", "What the draws do to accuracy", "", "standard deviation, points", tuple(panels)),
    ]


def _spreads(options: OrderOptions, outcome: StudyOutcome, block: ReportSection) -> VarianceComponents | None:
    rows = [outcome.results.row(block, name) for name in _drawn(options)]
    return variance_components([[row[task] for row in rows] for task in outcome.tasks(block, _drawn(options))])


def _findings(options: OrderOptions, outcome: StudyOutcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        each = []
        for method, title in _METHODS.items():
            first = outcome.compare(block, {_name(method, "nearest-first"): 1, method: -1})
            mixed = outcome.compare(block, {_name(method, "shuffled"): 1, method: -1})
            each.append(f"{points(first)} nearest first and {points(mixed)} shuffled for {title}")
        size = outcome.size(block, [_name(method, order) for method in _METHODS for order in _ORDERS])
        said.append(f"{outcome.name(block)}: against nearest last accuracy is {'; '.join(each)} ({size}).")
        found = _spreads(options, outcome, block)
        if found is None:
            said.append(f"{outcome.name(block)}: what draws of sentences do needs two seeds at least.")
            continue
        said.append(
            f"{outcome.name(block)}: the standard deviation of accuracy on a task is {_spread(found.labels)} over "
            f"draws of labels for the same sentences and {_spread(found.sentences)} over draws of sentences with the "
            f"same labels; the first minus the second is {points(found.difference)} ({options.draws} draws of labels "
            f"by a draw of sentences a seed; {outcome.size(block, _drawn(options))})."
        )
    return said


def _spread(value: Interval) -> str:
    return f"{value.estimate:.1f} points [{value.low:.1f}, {value.high:.1f}]"


STUDY = Study(
    name="order",
    title="The order of demonstrations, and what draws do",
    question="Does it matter where the nearest demonstrations stand, and do draws of labels matter more than draws of "
    "sentences?",
    paper="The paper puts the nearest last and tries no other order; it reports deviations over seeds that draw both.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=OrderOptions,
)
