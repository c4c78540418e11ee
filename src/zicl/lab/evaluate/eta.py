"""Estimate the time left of a run from what it measured so far."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence

from zicl.lab.evaluate.plan import PlanBatch, PlanCell
from zicl.lab.evaluate.store import NO_INFERENCE

# Seconds per example before anything was measured: with a prompt, and for controls.
_GUESS_PROMPT, _GUESS_OTHER = 1.0, 0.1


class EtaTracker:
    """Elapsed and expected seconds of a run. What is left is estimated from similar cells."""

    def __init__(self, todo: Sequence[PlanBatch]) -> None:
        self._left: Counter[PlanCell] = Counter()
        for batch in todo:
            self._left[batch.cell] += len(batch.examples)
        self._cells, self._examples = len(self._left), 0
        self._measured: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._start = self._last = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds until the last update."""
        return self._last - self._start

    @property
    def total(self) -> float:
        """Expected seconds of the run, those elapsed included."""
        return self.elapsed + sum(self._seconds_per_example(cell) * count for cell, count in self._left.items())

    def update(self, batch: PlanBatch) -> None:
        """Record that a batch is done."""
        now = time.monotonic()
        for key in _similar_cells(batch.cell):
            self._measured[key][0] += now - self._last
            self._measured[key][1] += len(batch.examples)
        self._examples += len(batch.examples)
        self._last = now
        self._left[batch.cell] -= len(batch.examples)
        if not self._left[batch.cell]:
            del self._left[batch.cell]

    def describe(self, batch: PlanBatch) -> str:
        """Return where the run is, for a progress bar."""
        rate = f", {self._examples / self.elapsed:.1f} examples/s" if self.elapsed else ""
        return f"{self._cells - len(self._left)}/{self._cells} cells{rate}, {batch.cell.key}"

    def _seconds_per_example(self, cell: PlanCell) -> float:
        for key in _similar_cells(cell):
            seconds, count = self._measured[key]
            if count:
                return seconds / count
        return _GUESS_PROMPT if cell.inference != NO_INFERENCE else _GUESS_OTHER


def _similar_cells(cell: PlanCell) -> list[tuple[str, ...]]:
    """Return the groups of cells whose examples cost about as much, the most similar group first."""
    return [(cell.task, cell.method, cell.template, cell.inference), (cell.method, cell.inference)]
