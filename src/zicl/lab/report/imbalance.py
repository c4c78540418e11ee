"""Test rows drawn anew with other shares of the labels: equal shares flatter a method that assumes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.lab.report.calibrate import batch_scores
from zicl.lab.report.cells import Cell, Key, Kind, Results, Run, macro_f1
from zicl.lab.report.copies import Ints

DRAWS = 20
LARGE = 0.9
_SEED = 0
Floats = NDArray[np.float64]
Pattern = Literal["one-large", "long-tailed"]


@dataclass(frozen=True)
class Resampled:
    """A cell under other shares: the means over seeds, draws and the labels' turns; ``rows`` of ``of`` are left."""

    key: Key
    pattern: Pattern
    accuracy: float
    macro_f1: float
    rows: float
    of: float


def one_large(labels: int) -> Floats:
    """Nine tenths to one label, the rest in equal parts to the others; a row for each label's turn.

    >>> one_large(2).round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    rest = (1 - LARGE) / (labels - 1)
    shares: Floats = np.full((labels, labels), rest) + np.eye(labels) * (LARGE - rest)
    return shares


def long_tailed(labels: int) -> Floats:
    """Each label half as frequent as the one before it; a row for each label that may be the first.

    >>> (7 * long_tailed(3)).round(2).tolist()
    [[4.0, 2.0, 1.0], [1.0, 4.0, 2.0], [2.0, 1.0, 4.0]]
    """
    halved = 0.5 ** np.arange(labels)
    return np.stack([np.roll(halved / halved.sum(), turn) for turn in range(labels)])


PATTERNS: dict[Pattern, Callable[[int], Floats]] = {"one-large": one_large, "long-tailed": long_tailed}


def quotas(counts: Ints, shares: Floats) -> Ints:
    """How many rows of each label to take: the most that have these shares, and of every label at least one.

    >>> quotas(np.array([50, 50]), np.array([0.9, 0.1])).tolist()
    [50, 5]
    """
    total = (counts / shares).min()
    # What is whole but for a rounding error is whole.
    whole: Ints = np.floor(total * shares + 1e-9).astype(np.int64)
    return np.maximum(whole, 1)


def draw(gold: Ints, shares: Floats, generator: np.random.Generator) -> Ints:
    """The numbers of rows that together have these shares, none twice."""
    taken = quotas(np.bincount(gold, minlength=len(shares)), shares)
    members = [np.flatnonzero(gold == label) for label in range(len(shares))]
    chosen = [generator.choice(own, size, replace=False) for own, size in zip(members, taken, strict=True)]
    return np.sort(np.concatenate(chosen))


def resampled(results: Results) -> list[Resampled]:
    """Every cell under both patterns; left out are those that lack rows of some label, or whose labels are numbers."""
    cells = [cell for key, cell in results.cells.items() if not results.tasks[key.task].counted]
    found = [_cell(cell, pattern) for pattern in PATTERNS for cell in cells]
    return [each for each in found if each is not None]


def _cell(cell: Cell, pattern: Pattern) -> Resampled | None:
    labels = len(cell.labels)
    whole = [run for run in cell.runs if np.bincount(run.gold, minlength=labels).all()]
    if not whole or len(whole) < len(cell.runs):
        return None
    scores = []
    for turn, shares in enumerate(PATTERNS[pattern](labels)):
        for number in range(DRAWS):
            for run in whole:
                # The same for all methods and seeds of a task that have the same rows.
                chosen = draw(run.gold, shares, rng(_SEED, "shares", cell.key.task, pattern, turn, number))
                gold, said = run.gold[chosen], _predicted(cell.kind, run, chosen)
                scores.append((float((gold == said).mean()), macro_f1(gold, said), len(chosen), len(run.gold)))
    accuracy, f1, rows, of = (float(value) for value in np.mean(scores, axis=0))
    return Resampled(cell.key, pattern, 100 * accuracy, 100 * f1, rows, of)


def _predicted(kind: Kind, run: Run, chosen: Ints) -> Ints:
    """The predictions for a draw; what is fitted on the test inputs is fitted on the draw."""
    if kind.batch:
        fitted: Ints = batch_scores(run.terms[:, chosen]).argmax(axis=1)
        return fitted
    if kind.sort == "majority":
        return np.full(len(chosen), np.bincount(run.gold[chosen]).argmax())
    return run.predicted[chosen]
