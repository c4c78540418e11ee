"""Compare methods: a paired bootstrap over examples and seeds, and Holm's correction over all comparisons.

Two methods are compared on the same examples and, where both have them, the same seeds. Every draw takes as many
examples of each task, and as many seeds, as there are, with replacement. The draws depend only on the task and the
seeds, so that all comparisons of a table share them.
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

# With this many, other draws would move an end of an interval by a fortieth of the standard error.
DRAWS = 10_000
BASELINES = ("no-demos", "icl-gold")
_SEED = 0
# Draws made at a time: all of them at once, of two thousand examples, would take half a gigabyte.
_AT_ONCE = 1000
# Fewer draws than this beyond zero are too few to count a p-value from.
_COUNTABLE = 10

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Interval:
    """A difference in percentage points, its 95 % interval and its two-sided p-value."""

    estimate: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """Two methods on one task, (seeds, examples): a difference of +1, 0 or -1, and where both have a row.

    A comparison of more than two methods has a weighted sum in place of the difference.
    """

    task: str
    seeds: tuple[int | None, ...]
    difference: Floats
    present: Floats


def correct(run: SeedRun) -> NDArray[np.bool_]:
    """Return which predictions are correct."""
    return np.asarray(run.gold == run.predicted)


class Term(NamedTuple):
    """A method on a task in a comparison: its weight, and what is measured in each row."""

    weight: float
    cell: ReportCell
    measure: Callable[[SeedRun], NDArray[np.bool_]] = correct


def pair_runs(first: ReportCell, second: ReportCell) -> PairedRuns | None:
    """Return the differences first - second; None if no seed or no example is in both."""
    return contrast([Term(1, first), Term(-1, second)])


def contrast(terms: Sequence[Term]) -> PairedRuns | None:
    """Return a weighted sum of several methods on one task; None if no seed or no example is in all of them."""
    seeds = common_seeds([[run.seed for run in term.cell.runs] for term in terms])
    by_seed = [({run.seed: run for run in term.cell.runs}) for term in terms]
    paired = [[runs.get(seed) or runs[None] for runs in by_seed] for seed in seeds]
    shared = [reduce(np.intersect1d, [run.examples for run in runs]) for runs in paired]
    if not shared or not any(len(names) for names in shared):
        return None
    examples = np.unique(np.concatenate(shared))
    difference = np.zeros((len(seeds), len(examples)), dtype=np.float32)
    present = np.zeros_like(difference)
    for number, (runs, names) in enumerate(zip(paired, shared, strict=True)):
        columns = np.searchsorted(examples, names)
        for term, run in zip(terms, runs, strict=True):
            difference[number, columns] += term.weight * term.measure(run)[np.searchsorted(run.examples, names)]
        present[number, columns] = 1
    return PairedRuns(terms[0].cell.key.task, tuple(seeds), difference, present)


# -- the bootstrap -------------------------------------------------------------------------------


def draw_counts(generator: np.random.Generator, draws: int, size: int) -> NDArray[np.uint8]:
    """Return how often each of ``size`` items is among ``size`` drawn with replacement, (draws, size)."""
    # One byte each: an item drawn 256 times where once is usual does not happen.
    counts = np.empty((draws, size), dtype=np.uint8)
    for first in range(0, draws, _AT_ONCE):
        rows = min(_AT_ONCE, draws - first)
        drawn = generator.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
        counts[first : first + rows] = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size)
    return counts


class BootstrapDifference(NamedTuple):
    """A difference in points, the same in every draw, and the number of examples that differ at all."""

    estimate: float
    drawn: NDArray[np.float64]
    differing: int


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Draws of examples and seeds, made when first needed and cached."""

    draws: int = DRAWS
    _cache: dict[tuple[object, ...], NDArray[np.uint8]] = field(default_factory=dict)

    def _counts(self, size: int, *keys: object) -> Floats:
        """Return how often each of ``size`` items is in each draw, (draws, size)."""
        if (size, *keys) not in self._cache:
            self._cache[(size, *keys)] = draw_counts(rng(_SEED, "bootstrap", size, *keys), self.draws, size)
        return self._cache[(size, *keys)].astype(np.float32)

    def resample(self, pair: PairedRuns) -> BootstrapDifference:
        """Return the difference itself and in every draw. Sums of integers: exact in any order."""
        examples = self._counts(pair.difference.shape[1], "examples", pair.task)
        seeds = self._counts(len(pair.seeds), "seeds", *pair.seeds)
        sums = np.einsum("ds,ds->d", seeds, examples @ pair.difference.T).astype(np.float64)
        rows = np.full(self.draws, float(pair.present.size))
        # Only where some are missing does a draw have another number of rows.
        if not pair.present.all():
            rows = np.einsum("ds,ds->d", seeds, examples @ pair.present.T).astype(np.float64)
        estimate = float(pair.difference.sum(dtype=np.float64) / pair.present.sum(dtype=np.float64))
        # A draw can miss every row only where seeds are partly finished; it then adds no information.
        drawn = np.divide(sums, rows, out=np.full(self.draws, estimate), where=rows > 0)
        return BootstrapDifference(100 * estimate, 100 * drawn, int((pair.difference != 0).any(axis=0).sum()))

    def compare(self, pairs: Sequence[PairedRuns]) -> Interval:
        """Return the difference, averaged over tasks."""
        return average_tasks([self.resample(pair) for pair in pairs])


def average_tasks(parts: Sequence[BootstrapDifference]) -> Interval:
    """Average differences over tasks, each with the same weight."""
    estimate = float(np.mean([part.estimate for part in parts]))
    drawn = np.mean([part.drawn for part in parts], axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975])
    p = p_value(estimate, drawn, sum(part.differing for part in parts))
    return Interval(estimate, min(float(low), estimate), max(float(high), estimate), p)


def p_value(estimate: float, drawn: NDArray[np.float64], differing: int) -> float:
    """Return twice the share of draws on the other side of zero, ties included.

    With hardly any draw there, counting is too coarse for a correction over many comparisons: then the normal
    distribution with the draws' standard deviation gives the tail. The value is never below that of a sign test in
    which all ``differing`` examples (those on which the methods disagree) favour one side.
    """
    other = int(min((drawn <= 0).sum(), (drawn >= 0).sum()))
    counted = min(1.0, 2 * (other + 1) / (len(drawn) + 1))
    spread = float(np.std(drawn, ddof=1))
    least = min(1.0, 2.0 ** (1 - differing))
    if other >= _COUNTABLE or spread == 0:
        return max(counted, least)
    return max(least, min(counted, math.erfc(abs(estimate) / spread / math.sqrt(2))))


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values with Holm's correction for multiple comparisons, in the order given.

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


# -- all methods against the baselines -----------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A method minus a baseline in accuracy, on one task or (``task`` None) averaged over ``tasks`` of them."""

    section: ReportSection
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
    """Return all differences of the tables; Holm's correction is over all of them together."""
    bootstrap = Bootstrap()
    rows: list[Difference] = []
    for section in results.sections:
        if section.inference == NO_INFERENCE:
            continue
        # Methods without a prompt are compared in every section.
        methods = results.without_prompt(section)
        methods |= {name: (traits, results.row(section, name)) for name, traits in results.methods(section).items()}
        for baseline in baselines:
            if baseline not in methods:
                continue
            for method, (traits, cells) in methods.items():
                if method != baseline:
                    for task, tasks, value in _compare(bootstrap, cells, methods[baseline][1]):
                        estimate = (value.estimate, value.low, value.high, value.p)
                        rows.append(Difference(section, method, traits, baseline, task, tasks, *estimate))
    corrected = holm([row.p for row in rows])
    return [replace(row, p_holm=p) for row, p in zip(rows, corrected, strict=True)]


def _compare(
    bootstrap: Bootstrap, cells: dict[str, ReportCell], baseline: dict[str, ReportCell]
) -> list[tuple[str | None, int, Interval]]:
    """Return the difference on each task, and averaged over them (None) if there are several."""
    pairs = [pair_runs(cell, baseline[task]) for task, cell in cells.items() if task in baseline]
    drawn = {pair.task: bootstrap.resample(pair) for pair in pairs if pair is not None}
    groups: list[tuple[str | None, list[BootstrapDifference]]] = [(task, [each]) for task, each in drawn.items()]
    if len(drawn) > 1:
        groups.append((None, list(drawn.values())))
    return [(task, len(members), average_tasks(members)) for task, members in groups]
