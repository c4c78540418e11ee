"""Batch calibration of stored rows: a run's scores, less what each label gets on average over the texts of that run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.lab.report.cells import CellKey, Ints, MethodTraits, ReportCell, ResultSet, SeedRun, macro_f1
from zicl.score.calibration import Scores, join_terms, log_prior


def batch_scores(terms: Scores) -> Scores:
    """Each term less its prior over all rows, joined: (terms, rows, labels) to (rows, labels).

    >>> batch_scores(np.log([[[0.9, 0.1], [0.7, 0.3]]])).argmax(axis=1).tolist()
    [0, 1]
    """
    priors = np.stack([log_prior(values) for values in terms])
    return join_terms(terms - priors[:, None])


def calibrate_results(results: ResultSet, *, every: bool = False) -> ResultSet:
    """The same results with methods that ask for it, or ``every`` prompt, calibrated run by run, and a note on it."""
    wanted = {k: c for k, c in results.cells.items() if c.kind.batch or (every and c.kind.sort == "prompt")}
    # A mean over texts of which some cannot choose a label, or for which it is another word, says nothing about it.
    done = {
        key: _cell(cell) for key, cell in wanted.items() if cell.same_options and not results.tasks[key.task].counted
    }
    left = {key: replace(cell, kind=replace(cell.kind, batch=False)) for key, cell in wanted.items() if key not in done}
    notes = [*_notes(done), *results.notes]
    if left:
        tasks = ", ".join(dict.fromkeys(key.task for key in left))
        notes.insert(1, f"Not batch-calibrated, for not all texts have the same options: {tasks}.")
    return replace(results, cells={**results.cells, **done, **left}, notes=tuple(notes))


def _notes(done: Mapping[CellKey, ReportCell]) -> list[str]:
    """What was done, and on how many texts it was fitted."""
    sizes: dict[str, set[int]] = {}
    for key, cell in done.items():
        sizes.setdefault(key.task, set()).update(len(run.examples) for run in cell.runs)
    fitted = {task: found for task, found in sizes.items() if found}
    if not fitted:
        return []
    return [
        "Batch-calibrated: every score less the logarithm of its label's mean probability, fitted for each method and "
        f"seed on the test inputs themselves, labels unused ({_texts(fitted)}). That assumes labels that are about "
        "equally frequent; --shares shows what becomes of it where they are not."
    ]


def _texts(sizes: dict[str, set[int]]) -> str:
    """How many texts, said once where it is the same everywhere.

    >>> _texts({"CR": {100}, "MR": {100}}), _texts({"CR": {100}, "MR": {64, 100}, "SST2": {100}})
    ('100 texts a task', 'CR, SST2: 100 texts; MR: 64 to 100 texts')
    """
    tasks: dict[str, list[str]] = {}
    for task, found in sizes.items():
        tasks.setdefault(_range(found), []).append(task)
    if len(tasks) == 1:
        return f"{next(iter(tasks))} texts a task"
    return "; ".join(f"{', '.join(names)}: {size} texts" for size, names in tasks.items())


def _range(found: set[int]) -> str:
    return f"{min(found):,}" if len(found) == 1 else f"{min(found):,} to {max(found):,}"


def _cell(cell: ReportCell) -> ReportCell:
    return replace(cell, kind=replace(cell.kind, batch=True), runs=tuple(map(_run, cell.runs)))


def _run(run: SeedRun) -> SeedRun:
    scores = batch_scores(run.terms)
    return replace(run, scores=scores, predicted=scores.argmax(axis=1))


# -- Test rows drawn anew with other shares of the labels: equal shares flatter a method that assumes them.


SHARE_DRAWS = 20
LARGE = 0.9
_SEED = 0
Floats = NDArray[np.float64]
Pattern = Literal["one-large", "long-tailed"]


@dataclass(frozen=True)
class ResampledCells:
    """A cell under other shares: the means over seeds, draws and the labels' turns; ``rows`` of ``of`` are left."""

    key: CellKey
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


def resample_results(results: ResultSet) -> list[ResampledCells]:
    """Every cell under both patterns; left out are those that lack rows of some label, or whose labels are numbers."""
    cells = [cell for key, cell in results.cells.items() if not results.tasks[key.task].counted]
    found = [_resampled_cell(cell, pattern) for pattern in PATTERNS for cell in cells]
    return [each for each in found if each is not None]


def _resampled_cell(cell: ReportCell, pattern: Pattern) -> ResampledCells | None:
    labels = len(cell.labels)
    whole = [run for run in cell.runs if np.bincount(run.gold, minlength=labels).all()]
    if not whole or len(whole) < len(cell.runs):
        return None
    scores = []
    for turn, shares in enumerate(PATTERNS[pattern](labels)):
        for number in range(SHARE_DRAWS):
            for run in whole:
                # The same for all methods and seeds of a task that have the same rows.
                chosen = draw(run.gold, shares, rng(_SEED, "shares", cell.key.task, pattern, turn, number))
                gold, said = run.gold[chosen], _predicted(cell.kind, run, chosen)
                scores.append((float((gold == said).mean()), macro_f1(gold, said), len(chosen), len(run.gold)))
    accuracy, f1, rows, of = (float(value) for value in np.mean(scores, axis=0))
    return ResampledCells(cell.key, pattern, 100 * accuracy, 100 * f1, rows, of)


def _predicted(kind: MethodTraits, run: SeedRun, chosen: Ints) -> Ints:
    """The predictions for a draw; what is fitted on the test inputs is fitted on the draw."""
    if kind.batch:
        fitted: Ints = batch_scores(run.terms[:, chosen]).argmax(axis=1)
        return fitted
    if kind.sort == "majority":
        return np.full(len(chosen), np.bincount(run.gold[chosen]).argmax())
    return run.predicted[chosen]
