"""Batch calibration of stored rows: subtract each label's log prior, fitted on the texts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from zicl.lab.report.cells import CellKey, ReportCell, ResultSet, SeedRun
from zicl.score.calibration import Scores, join_terms, log_prior


def batch_scores(terms: Scores) -> Scores:
    """Subtract each term's prior over all rows, and join: (terms, rows, labels) to (rows, labels).

    >>> batch_scores(np.log([[[0.9, 0.1], [0.7, 0.3]]])).argmax(axis=1).tolist()
    [0, 1]
    """
    priors = np.stack([log_prior(values) for values in terms])
    return join_terms(terms - priors[:, None])


def calibrate_results(results: ResultSet, *, every: bool = False) -> ResultSet:
    """Calibrate the methods that are configured so, or ``every`` prompt, run by run; a note says so."""
    chosen = {k: c for k, c in results.cells.items() if c.kind.batch or (every and c.kind.sort == "prompt")}
    # A label's mean over texts means nothing if some texts do not have it, or have other words for it.
    calibrated = {
        key: _calibrate(cell)
        for key, cell in chosen.items()
        if cell.same_options and not results.tasks[key.task].counted
    }
    unchanged = {
        key: replace(cell, kind=replace(cell.kind, batch=False))
        for key, cell in chosen.items()
        if key not in calibrated
    }
    notes = [*_notes(calibrated), *results.notes]
    if unchanged:
        tasks = ", ".join(dict.fromkeys(key.task for key in unchanged))
        notes.insert(1, f"Not batch-calibrated, for not all texts have the same options: {tasks}.")
    return replace(results, cells={**results.cells, **calibrated, **unchanged}, notes=tuple(notes))


def _calibrate(cell: ReportCell) -> ReportCell:
    def calibrated(run: SeedRun) -> SeedRun:
        scores = batch_scores(run.terms)
        return replace(run, scores=scores, predicted=scores.argmax(axis=1))

    return replace(cell, kind=replace(cell.kind, batch=True), runs=tuple(map(calibrated, cell.runs)))


def _notes(calibrated: Mapping[CellKey, ReportCell]) -> list[str]:
    """Say what was done, and on how many texts the priors were fitted."""
    sizes: dict[str, set[int]] = {}
    for key, cell in calibrated.items():
        sizes.setdefault(key.task, set()).update(len(run.examples) for run in cell.runs)
    fitted = {task: counts for task, counts in sizes.items() if counts}
    if not fitted:
        return []
    return [
        "Batch-calibrated: every score less the logarithm of its label's mean probability, fitted for each method and "
        f"seed on the test inputs themselves, labels unused ({_describe_sizes(fitted)}). That assumes labels that are "
        "about equally frequent; --shares shows what becomes of it where they are not."
    ]


def _describe_sizes(sizes: dict[str, set[int]]) -> str:
    """Describe numbers of texts, once if they are the same for all tasks.

    >>> _describe_sizes({"CR": {100}, "MR": {100}}), _describe_sizes({"CR": {100}, "MR": {64, 100}, "SST2": {100}})
    ('100 texts a task', 'CR, SST2: 100 texts; MR: 64 to 100 texts')
    """
    tasks: dict[str, list[str]] = {}
    for task, counts in sizes.items():
        low, high = f"{min(counts):,}", f"{max(counts):,}"
        tasks.setdefault(low if low == high else f"{low} to {high}", []).append(task)
    if len(tasks) == 1:
        return f"{next(iter(tasks))} texts a task"
    return "; ".join(f"{', '.join(names)}: {size} texts" for size, names in tasks.items())
