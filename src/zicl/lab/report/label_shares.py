"""Scores under other label shares: test rows are resampled, because equal shares flatter methods that assume them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.lab.report.batch_calibration import batch_scores
from zicl.lab.report.cells import CellKey, Ints, MethodTraits, ReportCell, ResultSet, SeedRun, macro_f1
from zicl.lab.report.layout import Table, text_table

_LARGE = 0.9
_DRAWS = 20
_SEED = 0
Floats = NDArray[np.float64]
Pattern = Literal["one-large", "long-tailed"]


@dataclass(frozen=True)
class ResampledCell:
    """A cell under other shares: means over seeds, draws and rotations; a draw has ``rows`` rows ``of`` all."""

    key: CellKey
    pattern: Pattern
    accuracy: float
    macro_f1: float
    rows: float
    of: float


def one_large(labels: int) -> Floats:
    """Return shares of nine tenths for one label and the rest divided equally; one row per label that is large.

    >>> one_large(2).round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    rest = (1 - _LARGE) / (labels - 1)
    shares: Floats = np.full((labels, labels), rest) + np.eye(labels) * (_LARGE - rest)
    return shares


def long_tailed(labels: int) -> Floats:
    """Return shares that halve from one label to the next; one row per label that comes first.

    >>> (7 * long_tailed(3)).round(2).tolist()
    [[4.0, 2.0, 1.0], [1.0, 4.0, 2.0], [2.0, 1.0, 4.0]]
    """
    halved = 0.5 ** np.arange(labels)
    return np.stack([np.roll(halved / halved.sum(), first) for first in range(labels)])


PATTERNS: dict[Pattern, Callable[[int], Floats]] = {"one-large": one_large, "long-tailed": long_tailed}
_TITLES: dict[Pattern, str] = {
    "one-large": f"one label has {_LARGE:.0%} of the rows".replace("%", " %"),
    "long-tailed": "each label is half as frequent as the one before",
}


def quotas(counts: Ints, shares: Floats) -> Ints:
    """Return how many rows of each label to draw: the most that have these shares, at least one of each.

    >>> quotas(np.array([50, 50]), np.array([0.9, 0.1])).tolist()
    [50, 5]
    """
    total = (counts / shares).min()
    # Rounding errors must not cost a row.
    rows: Ints = np.floor(total * shares + 1e-9).astype(np.int64)
    return np.maximum(rows, 1)


def draw(gold: Ints, shares: Floats, generator: np.random.Generator) -> Ints:
    """Draw rows with these label shares, without replacement."""
    sizes = quotas(np.bincount(gold, minlength=len(shares)), shares)
    by_label = [np.flatnonzero(gold == label) for label in range(len(shares))]
    drawn = [generator.choice(rows, size, replace=False) for rows, size in zip(by_label, sizes, strict=True)]
    return np.sort(np.concatenate(drawn))


def resample_results(results: ResultSet) -> list[ResampledCell]:
    """Resample every cell under both patterns, except cells that lack a label or whose labels number options.

    A method that learned from all texts is left out: under other shares it would have learned something else.
    """
    usable = (cell for key, cell in results.cells.items() if not results.tasks[key.task].counted)
    cells = [cell for cell in usable if not cell.kind.pile]
    resampled = [_resample(cell, pattern) for pattern in PATTERNS for cell in cells]
    return [each for each in resampled if each is not None]


def _resample(cell: ReportCell, pattern: Pattern) -> ResampledCell | None:
    labels = len(cell.labels)
    if not cell.runs or not all(np.bincount(run.gold, minlength=labels).all() for run in cell.runs):
        return None
    scores = []
    for rotation, shares in enumerate(PATTERNS[pattern](labels)):
        for number in range(_DRAWS):
            for run in cell.runs:
                # The same for all methods and seeds of a task that have the same rows.
                rows = draw(run.gold, shares, rng(_SEED, "shares", cell.key.task, pattern, rotation, number))
                gold, predicted = run.gold[rows], _predict(cell.kind, run, rows)
                scores.append((float((gold == predicted).mean()), macro_f1(gold, predicted), len(rows), len(run.gold)))
    accuracy, f1, drawn, of = (float(value) for value in np.mean(scores, axis=0))
    return ResampledCell(cell.key, pattern, 100 * accuracy, 100 * f1, drawn, of)


def _predict(traits: MethodTraits, run: SeedRun, rows: Ints) -> Ints:
    """Return the predictions for a draw; what is fitted on the test inputs is fitted on the draw."""
    if traits.batch:
        calibrated: Ints = batch_scores(run.terms[:, rows]).argmax(axis=1)
        return calibrated
    if traits.sort == "majority":
        return np.full(len(rows), np.bincount(run.gold[rows]).argmax())
    return run.predicted[rows]


def share_tables(results: ResultSet, cells: Sequence[ResampledCell]) -> list[Table]:
    """Return one table per pattern that has resampled cells."""
    tables = [_table(results, pattern, [c for c in cells if c.pattern == pattern]) for pattern in PATTERNS]
    return [table for table in tables if table.sections]


def _table(results: ResultSet, pattern: Pattern, cells: Sequence[ResampledCell]) -> Table:
    by_key = {cell.key: cell for cell in cells}

    def scores(cell: ReportCell) -> str:
        resampled = by_key.get(cell.key)
        return f"{resampled.accuracy:.1f} / {resampled.macro_f1:.1f}" if resampled else ""

    notes = [
        f"Rows drawn anew from the test rows, label by label and none twice: the mean over {_DRAWS} draws for each "
        "label in turn as the most frequent, and over seeds. Majority, and what is batch-calibrated, are fitted on "
        "each draw. Every label keeps at least one row: where rows are few, the largest share is smaller than it "
        "should be. What learned from the texts themselves (z-icl+) is left out: benchmarks/beyond.py fits it anew."
    ]
    sizes: dict[str, dict[str, None]] = {}
    for cell in cells:
        sizes.setdefault(cell.key.task, {})[f"{cell.rows:.0f} of {cell.of:.0f}"] = None
    if sizes:
        counts = ", ".join(f"{task} {' or '.join(numbers)}" for task, numbers in sizes.items())
        notes.append(f"Rows left in a draw, on average: {counts}.")
    return text_table(results, f"Accuracy / macro-F1 in per cent where {_TITLES[pattern]}", scores, notes)
