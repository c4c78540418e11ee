"""Batch calibration of stored rows: a run's scores, less what each label gets on average over the texts of that run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from zicl.lab.report.cells import Cell, Key, Results, Run
from zicl.score.calibration import Scores, joined, log_prior


def batch_scores(terms: Scores) -> Scores:
    """Each term less its prior over all rows, joined: (terms, rows, labels) to (rows, labels).

    >>> batch_scores(np.log([[[0.9, 0.1], [0.7, 0.3]]])).argmax(axis=1).tolist()
    [0, 1]
    """
    priors = np.stack([log_prior(values) for values in terms])
    return joined(terms - priors[:, None])


def calibrated(results: Results, *, every: bool = False) -> Results:
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


def _notes(done: Mapping[Key, Cell]) -> list[str]:
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


def _cell(cell: Cell) -> Cell:
    return replace(cell, kind=replace(cell.kind, batch=True), runs=tuple(map(_run, cell.runs)))


def _run(run: Run) -> Run:
    scores = batch_scores(run.terms)
    return replace(run, scores=scores, predicted=scores.argmax(axis=1))
