"""Published rows, scored again: a random sample of them must come out as it was stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zicl._progress import Report, silent
from zicl._random import rng
from zicl.evaluate.plan import Cell
from zicl.evaluate.run import Runner
from zicl.evaluate.store import Results, Row
from zicl.evaluate.world import World
from zicl.exceptions import UsageError

# What another batch size, thread count or machine may change.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Checked:
    """One row, stored and computed again."""

    key: str
    example: str
    difference: float
    same_prompt: bool

    @property
    def agrees(self) -> bool:
        """Whether the row is what it says."""
        return self.same_prompt and self.difference < TOLERANCE


def verify(
    world: World, results: Results, *, sample: int = 20, seed: int = 0, report: Report = silent
) -> list[Checked]:
    """Score a random sample of rows again."""
    rows = [row for row in results.table().to_pylist() if row["task"] in world.tasks and row["method"] in world.methods]
    if not rows:
        raise UsageError("no stored row belongs to this experiment", hint="give the experiment the rows were made with")
    order = rng(seed, "verify").permutation(len(rows))[:sample]
    runner, checked = Runner(world), []
    for number, place in enumerate(sorted(order.tolist())):
        report("scoring again", number, len(order))
        checked.append(_check(runner, rows[place]))
    report("scoring again", len(order), len(order))
    return checked


def _check(runner: Runner, row: Row) -> Checked:
    cell = Cell(row["task"], row["method"], row["template"], row["inference"], row["seed"])
    examples = [example for example in runner.world.examples[cell.task] if example.id == row["example"]]
    if not examples:
        raise UsageError(
            f"{cell.key}: there is no example {row['example']!r} in the data at hand",
            hint="give the same data, and at least as many examples",
        )
    again = runner.rows(cell, examples)[0]
    stored, now = (np.array([each["log_likelihoods"], *(each["raw"] or ())]) for each in (row, again))
    with np.errstate(invalid="ignore"):
        apart = np.where(stored == now, 0.0, np.abs(stored - now))
    return Checked(cell.key, row["example"], float(apart.max()), again["prompt_hash"] == row["prompt_hash"])
