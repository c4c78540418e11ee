"""Verify published rows: score a random sample again and compare it with what is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.exceptions import UsageError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.plan import PlanCell
from zicl.lab.evaluate.run import Runner
from zicl.lab.evaluate.store import ResultsFolder, Row
from zicl.lm.remote.settings import is_remote

# How much scores may differ with the batch size, the threads or the machine: more in half precision, which a server
# may use.
TOLERANCE = {"float32": 1e-4}
_HALF = 0.25
# Columns that have to be equal, and columns that may differ by rounding.
_SAME = ("gold", "demos", "demo_words", "demo_labels", "kept", "input_cut", "prompt_hash", "identical")
_SCORES = ("log_likelihoods", "values", "terms", "raw")


@dataclass(frozen=True)
class VerifyResult:
    """The comparison of a stored row with the same row computed again; ``other`` names columns that differ."""

    key: str
    example: str
    difference: float
    allowed: float
    other: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether the row was reproduced."""
        return not self.other and self.difference < self.allowed


def verify(
    context: ExperimentContext,
    results: ResultsFolder,
    *,
    sample: int = 20,
    seed: int = 0,
    report: ProgressReport = silent,
) -> list[VerifyResult]:
    """Score a random sample of the stored rows again."""
    stored = results.table().to_pylist()
    rows = [row for row in stored if row["task"] in context.tasks and row["method"] in context.methods]
    if not rows:
        raise UsageError("no stored row belongs to this experiment", hint="give the experiment the rows were made with")
    order = rng(seed, "verify").permutation(len(rows))[:sample]
    runner, checked = Runner(context), []
    for number, place in enumerate(sorted(order.tolist())):
        report("scoring again", number, len(order))
        checked.append(_check(runner, rows[place]))
    report("scoring again", len(order), len(order))
    return checked


def _check(runner: Runner, row: Row) -> VerifyResult:
    cell = PlanCell(row["task"], row["method"], row["template"], row["inference"], row["seed"])
    examples = [example for example in runner.context.examples[cell.task] if example.id == row["example"]]
    if not examples:
        raise UsageError(
            f"{cell.key}: there is no example {row['example']!r} in the data",
            hint="give the same data, and at least as many examples",
        )
    again = runner.rows(cell, examples)[0]
    experiment = runner.context.experiment
    allowed = _HALF if is_remote(experiment.lm) else TOLERANCE.get(experiment.scoring.dtype, _HALF)
    difference = max((_difference(row[name], again[name]) for name in _SCORES), default=0.0)
    other = [name for name in _SAME if row[name] != again[name]]
    compared = again["values"] or again["log_likelihoods"]
    first, second = sorted(compared, reverse=True)[:2]
    # Labels whose scores differ by no more than rounding may change places.
    if row["predicted"] != again["predicted"] and first - second > 2 * allowed:
        other.append("predicted")
    return VerifyResult(cell.key, row["example"], difference, allowed, tuple(other))


def _difference(stored: Any, now: Any) -> float:
    """Return the largest absolute difference of two (nested) lists of scores."""
    if stored is None or now is None:
        return 0.0 if stored is now else np.inf
    one, two = np.ravel(stored), np.ravel(now)
    if one.shape != two.shape:
        return np.inf
    with np.errstate(invalid="ignore"):
        return float(np.where(one == two, 0.0, np.abs(one - two)).max(initial=0.0))
