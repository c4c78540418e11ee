"""How much accuracy varies over draws of labels, apart from draws of sentences: a crossed design."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.lab.report.bootstrap import DRAWS, Estimate, draw_counts
from zicl.lab.report.cells import Cell, common_seeds

Right = NDArray[np.float64]


class Spreads(NamedTuple):
    """Standard deviations of accuracy, in points: over draws of labels, over draws of sentences, and the difference."""

    labels: Estimate
    sentences: Estimate
    difference: Estimate


def spreads(tasks: Sequence[Sequence[Cell]]) -> Spreads | None:
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
    return Spreads(*(_estimate(float(np.squeeze(value)), values) for value, values in pairs))


def _table(cells: Sequence[Cell]) -> Right | None:
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


def _estimate(value: float, drawn: Right) -> Estimate:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(value, min(float(low), value), max(float(high), value), float("nan"))
