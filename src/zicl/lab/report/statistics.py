"""A paired bootstrap over examples and seeds.

Two methods are compared on the same examples and, where both have them, the same seeds. Every draw takes as
many examples of each task, and as many seeds, as there are, with replacement. The draws of a task's examples
and of the seeds depend on nothing else, so that all comparisons of a table share them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.cells import MethodTraits, ReportCell, ReportSection, ResultSet, SeedRun, common_seeds

# So many that an end of an interval moves by a fortieth of the standard error with other draws.
DRAWS = 10_000
_SEED = 0
# Draws made at a time: all of them at once, of two thousand examples, would take half a gigabyte.
_AT_ONCE = 1000
# Fewer draws than this beyond zero are too few to count a p-value from.
_COUNTABLE = 10

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """Two methods on one task: +1, 0 or -1 for each seed and example, and where both have a row.

    A comparison of more than two has a weighted sum in its place.
    """

    task: str
    seeds: tuple[int | None, ...]
    difference: Floats
    there: Floats


@dataclass(frozen=True)
class Interval:
    """A difference in percentage points, its 95 % interval and its two-sided p-value."""

    estimate: float
    low: float
    high: float
    p: float


def correct(run: SeedRun) -> NDArray[np.bool_]:
    """Which predictions are right."""
    return np.asarray(run.gold == run.predicted)


class Term(NamedTuple):
    """A method on a task in a comparison: what is measured of it, and with which sign and weight it counts."""

    weight: float
    cell: ReportCell
    measure: Callable[[SeedRun], NDArray[np.bool_]] = correct


def pair_runs(first: ReportCell, second: ReportCell) -> PairedRuns | None:
    """The differences first - second; None where no seed or no example is in both."""
    return contrast([Term(1, first), Term(-1, second)])


def contrast(terms: Sequence[Term]) -> PairedRuns | None:
    """A weighted sum of several methods on one task; None where no seed or no example is in all of them."""
    seeds = common_seeds([[run.seed for run in term.cell.runs] for term in terms])
    runs = [({run.seed: run for run in term.cell.runs}) for term in terms]
    drawn = [[each.get(seed) or each[None] for each in runs] for seed in seeds]
    shared = [reduce(np.intersect1d, [run.examples for run in each]) for each in drawn]
    if not shared or not any(len(each) for each in shared):
        return None
    examples = np.unique(np.concatenate(shared))
    difference = np.zeros((len(seeds), len(examples)), dtype=np.float32)
    there = np.zeros_like(difference)
    for number, (each, names) in enumerate(zip(drawn, shared, strict=True)):
        at = np.searchsorted(examples, names)
        for term, run in zip(terms, each, strict=True):
            difference[number, at] += term.weight * term.measure(run)[np.searchsorted(run.examples, names)]
        there[number, at] = 1
    return PairedRuns(terms[0].cell.key.task, tuple(seeds), difference, there)


def draw_counts(generator: np.random.Generator, draws: int, size: int) -> NDArray[np.uint8]:
    """How often each of ``size`` things is among as many drawn with replacement, (draws, size)."""
    # A byte each: that something is drawn 256 times where once is usual does not happen.
    counts = np.empty((draws, size), dtype=np.uint8)
    for first in range(0, draws, _AT_ONCE):
        rows = min(_AT_ONCE, draws - first)
        drawn = generator.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
        counts[first : first + rows] = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size)
    return counts


class Draws(NamedTuple):
    """A difference in points, the same in every draw, and the number of examples that differ at all."""

    estimate: float
    drawn: NDArray[np.float64]
    differing: int


def average_draws(parts: Sequence[Draws]) -> Interval:
    """The difference, averaged over tasks."""
    estimate = float(np.mean([part.estimate for part in parts]))
    drawn = np.mean([part.drawn for part in parts], axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975])
    p = p_value(estimate, drawn, sum(part.differing for part in parts))
    return Interval(estimate, min(float(low), estimate), max(float(high), estimate), p)


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The draws, made when first needed and kept."""

    draws: int = DRAWS
    _kept: dict[tuple[object, ...], NDArray[np.uint8]] = field(default_factory=dict)

    def _counts(self, size: int, *keys: object) -> Floats:
        """How often each of ``size`` things is in each draw, (draws, size)."""
        if (size, *keys) not in self._kept:
            self._kept[(size, *keys)] = draw_counts(rng(_SEED, "bootstrap", size, *keys), self.draws, size)
        return self._kept[(size, *keys)].astype(np.float32)

    def resample(self, pair: PairedRuns) -> Draws:
        """The difference itself and in every draw. Sums of whole numbers: exact in any order."""
        examples = self._counts(pair.difference.shape[1], "examples", pair.task)
        seeds = self._counts(len(pair.seeds), "seeds", *pair.seeds)
        above = np.einsum("ds,ds->d", seeds, examples @ pair.difference.T).astype(np.float64)
        below = np.full(self.draws, float(pair.there.size))
        # Only where some are missing does a draw have another number of rows.
        if not pair.there.all():
            below = np.einsum("ds,ds->d", seeds, examples @ pair.there.T).astype(np.float64)
        estimate = float(pair.difference.sum(dtype=np.float64) / pair.there.sum(dtype=np.float64))
        # A draw can miss every row only where seeds are partly finished; it then says nothing new.
        drawn = np.divide(above, below, out=np.full(self.draws, estimate), where=below > 0)
        return Draws(100 * estimate, 100 * drawn, int((pair.difference != 0).any(axis=0).sum()))

    def compare(self, pairs: Sequence[PairedRuns]) -> Interval:
        """The difference, averaged over tasks."""
        return average_draws([self.resample(each) for each in pairs])


def p_value(estimate: float, drawn: NDArray[np.float64], differing: int) -> float:
    """Twice the share of draws on the other side of zero, ties included.

    Where hardly any draw lies there, counting is too coarse for a correction over many comparisons: then the
    normal distribution with the draws' standard deviation gives the tail. It is never below what a sign test gives
    if all ``differing`` examples, those on which the two disagree, speak for one side: few cannot say more.
    """
    other = int(min((drawn <= 0).sum(), (drawn >= 0).sum()))
    counted = min(1.0, 2 * (other + 1) / (len(drawn) + 1))
    spread = float(np.std(drawn, ddof=1))
    least = min(1.0, 2.0 ** (1 - differing))
    if other >= _COUNTABLE or spread == 0:
        return max(counted, least)
    return max(least, min(counted, math.erfc(abs(estimate) / spread / math.sqrt(2))))


# -- Holm's correction: p-values of many comparisons, such that the chance of one false alarm stays what it says.


def holm(p: Sequence[float]) -> list[float]:
    """The corrected p-values, in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    # The smallest is multiplied by the number of comparisons, the next by one less; none falls below one before it.
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in corrected]


# -- Every method's difference in accuracy to some baselines, with intervals and corrected p-values.


BASELINES = ("no-demos", "icl-gold")


@dataclass(frozen=True)
class Difference:
    """A method minus a baseline, on one task or (``task`` None) averaged over ``tasks`` of them."""

    block: ReportSection
    method: str
    kind: MethodTraits
    baseline: str
    task: str | None
    tasks: int
    estimate: float
    low: float
    high: float
    p: float
    p_holm: float = 1.0


def differences(results: ResultSet, baselines: Sequence[str] = BASELINES) -> list[Difference]:
    """All differences of the tables; Holm's correction is over all of them together."""
    bootstrap = Bootstrap()
    found: list[Difference] = []
    for block in results.blocks:
        if block.inference == NO_INFERENCE:
            continue
        # Methods without a prompt have no inference of their own: they are compared in every block.
        beside = {next(iter(cells.values())).key.method: (kind, cells) for kind, cells in results.beside(block)}
        own = {method: (kind, results.row(block, method)) for method, kind in results.methods(block).items()}
        every = {**beside, **own}
        for name in baselines:
            baseline = every.get(name)
            for method, (kind, cells) in every.items():
                if baseline and method != name:
                    found += _row(bootstrap, block, method, kind, name, cells, baseline[1])
    corrected = holm([each.p for each in found])
    return [replace(each, p_holm=p) for each, p in zip(found, corrected, strict=True)]


def _row(
    bootstrap: Bootstrap,
    block: ReportSection,
    method: str,
    kind: MethodTraits,
    name: str,
    cells: dict[str, ReportCell],
    baseline: dict[str, ReportCell],
) -> list[Difference]:
    both = [pair_runs(cell, baseline[task]) for task, cell in cells.items() if task in baseline]
    drawn = {each.task: bootstrap.resample(each) for each in both if each is not None}
    groups: list[tuple[str | None, list[Draws]]] = [(task, [each]) for task, each in drawn.items()]
    if len(drawn) > 1:
        groups.append((None, list(drawn.values())))
    compared = [(task, len(members), average_draws(members)) for task, members in groups]
    return [
        Difference(block, method, kind, name, task, tasks, value.estimate, value.low, value.high, value.p)
        for task, tasks, value in compared
    ]
