"""Measure what a run costs while it runs, for an honest time left."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zicl.lab.evaluate.plan import PlanBatch, PlanCell

if TYPE_CHECKING:
    pass


# Seconds an example before anything is measured, only to begin with: prompts of their own, and all others.
_GUESS_PROMPT, _GUESS_OTHER = 1.0, 0.1


class RunningCost:
    """Seconds done and seconds in all. What is left is counted with what like cells took so far."""

    def __init__(self, todo: Sequence[PlanBatch]) -> None:
        self._left: Counter[PlanCell] = Counter()
        for batch in todo:
            self._left[batch.cell] += len(batch.examples)
        self._cells, self._examples = len(self._left), 0
        self._seconds: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._begun = self._last = time.monotonic()

    @property
    def done(self) -> float:
        """Seconds so far."""
        return self._last - self._begun

    @property
    def total(self) -> float:
        """Seconds in all, by what was measured."""
        return self.done + sum(self._each(cell) * count for cell, count in self._left.items())

    def spent(self, batch: PlanBatch) -> None:
        """A batch is done."""
        now = time.monotonic()
        for key in _similar_cells(batch.cell):
            self._seconds[key][0] += now - self._last
            self._seconds[key][1] += len(batch.examples)
        self._examples += len(batch.examples)
        self._last = now
        self._left[batch.cell] -= len(batch.examples)
        if not self._left[batch.cell]:
            del self._left[batch.cell]

    def note(self, batch: PlanBatch) -> str:
        """Where the run is."""
        rate = f", {self._examples / self.done:.1f} examples/s" if self.done else ""
        return f"{self._cells - len(self._left)}/{self._cells} cells{rate}, {batch.cell.key}"

    def _each(self, cell: PlanCell) -> float:
        for key in _similar_cells(cell):
            seconds, count = self._seconds[key]
            if count:
                return seconds / count
        return _GUESS_PROMPT if cell.inference != "none" else _GUESS_OTHER


def _similar_cells(cell: PlanCell) -> list[tuple[str, ...]]:
    """Cells whose examples cost about as much, the most alike first."""
    return [(cell.task, cell.method, cell.template, cell.inference), (cell.method, cell.inference)]
