"""Single predictions from results folders: as many wrong as correct ones, with scores and demonstrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zicl._util.random import stable_hash
from zicl.lab.evaluate.store import KEY, ResultsFolder, cell_key
from zicl.lab.report.cells import CellKey, ResultSet, SeedRun
from zicl.lab.report.collect import model_names
from zicl.lab.report.layout import row_title
from zicl.lab.report.reliability import has_probabilities

# The default limits: predictions of each cell, and of the page.
PER_CELL, PER_PAGE = 200, 10_000
_COLUMNS = ("demos", "demo_words", "demo_labels", "similarities", "kept", "input_cut")


@dataclass(frozen=True)
class StoredDemonstration:
    """A demonstration: its id, the words and the class shown with it, and whether it fit into the prompt (kept)."""

    id: str
    words: str
    label: str
    similarity: float | None
    kept: bool


@dataclass(frozen=True)
class StoredPrediction:
    """One prediction; classes are positions among the cell's labels.

    Demonstrations are sorted by similarity if all have one, else in the order of the prompt.
    """

    example: str
    gold: int
    predicted: int
    scores: tuple[float, ...]
    demos: tuple[StoredDemonstration, ...]
    input_cut: bool


@dataclass(frozen=True)
class StoredPredictions:
    """Predictions of one method on one task with one seed: ``shown`` of ``total``, ``correct`` of these correct.

    ``group`` is "results" or the name of a study. ``config`` is the method's configuration; ``manifest`` is that of
    the results folder, which defines the ids.
    """

    group: str
    key: CellKey
    seed: int | None
    title: str
    labels: tuple[str, ...]
    has_probabilities: bool
    total: int
    correct: int
    shown: tuple[StoredPrediction, ...]
    config: dict[str, Any]
    manifest: dict[str, Any]


def cell_limit(cells: int, requested: int | None) -> int:
    """Return the maximum number of predictions per cell.

    >>> cell_limit(3, None), cell_limit(500, None), cell_limit(500, 7)
    (200, 20, 7)
    """
    return requested if requested is not None else max(1, min(PER_CELL, PER_PAGE // max(cells, 1)))


def choose(correct: Mapping[str, bool], limit: int) -> list[str]:
    """Choose examples in random order, as many wrong as correct ones as far as possible.

    The order depends only on the names: two methods mostly show the same texts, and a larger limit keeps all examples
    of a smaller one.

    >>> sorted(choose({"a": True, "b": True, "c": True, "d": False}, 2), key=lambda name: name == "d")[1]
    'd'
    """
    ordered = sorted(correct, key=lambda name: (stable_hash("shown", name), name))
    sides = [[name for name in ordered if correct[name] is side] for side in (True, False)]
    # Alternate between the two, and end with the rest of the longer one.
    ranked = [(rank, side, name) for side, names in enumerate(sides) for rank, name in enumerate(names)]
    return [name for _, _, name in sorted(ranked)[:limit]]


def stored_predictions(group: str, folders: Sequence[Path], results: ResultSet, limit: int) -> list[StoredPredictions]:
    """Read at most ``limit`` predictions of every cell and seed: z-icl first, methods without demonstrations last."""
    opened = [ResultsFolder.open(folder) for folder in folders]
    predictions: list[StoredPredictions] = []
    for folder, model in zip(opened, model_names(opened), strict=True):
        table = folder.table(_COLUMNS)
        positions = _row_positions(table)
        for key, cell in results.cells.items():
            for run in cell.runs if key.model == model else ():
                name = cell_key(key.task, key.method, key.template, key.inference, run.seed)
                if name not in positions:
                    continue
                rows = CellRows(table, positions[name])
                predictions.append(
                    StoredPredictions(
                        group=group,
                        key=key,
                        seed=run.seed,
                        title=row_title(cell.kind),
                        labels=cell.labels,
                        has_probabilities=has_probabilities(cell),
                        total=len(run.examples),
                        correct=int((run.gold == run.predicted).sum()),
                        shown=tuple(_read_predictions(results, run, rows, limit)),
                        config=folder.manifest["cells"].get(name, {}).get("method") or {},
                        manifest=folder.manifest,
                    )
                )
    return sorted(predictions, key=_rank)


def _rank(cell: StoredPredictions) -> tuple[bool, bool, bool]:
    return not any(one.demos for one in cell.shown), bool(cell.config.get("labelled")), cell.key.method != "z-icl"


def _row_positions(table: Any) -> dict[str, dict[str, int]]:
    """Return the row number of every cell and example."""
    columns = [table[name].to_pylist() for name in KEY]
    positions: dict[str, dict[str, int]] = {}
    for number, (*cell, example) in enumerate(zip(*columns, strict=True)):
        positions.setdefault(cell_key(*cell), {})[example] = number
    return positions


def _read_predictions(results: ResultSet, run: SeedRun, rows: CellRows, limit: int) -> Iterator[StoredPrediction]:
    names = [results.examples[number] for number in run.examples.tolist()]
    positions = {name: number for number, name in enumerate(names)}
    correct = dict(zip(names, (run.gold == run.predicted).tolist(), strict=True))
    for name in choose(correct, limit):
        at = positions[name]
        demos, cut = rows.demos(name)
        scores = tuple(float(score) for score in np.round(run.scores[at], 4))
        yield StoredPrediction(name, int(run.gold[at]), int(run.predicted[at]), scores, demos, cut)


@dataclass(frozen=True)
class CellRows:
    """The rows of one cell by example, converted one by one: most are not shown."""

    table: Any
    positions: dict[str, int]

    def demos(self, example: str) -> tuple[tuple[StoredDemonstration, ...], bool]:
        """Return the demonstrations of an example, and whether its text was cut."""
        row = self.table.slice(self.positions[example], 1).to_pylist()[0]
        ids, similarities = row["demos"] or [], row["similarities"] or []
        if len(similarities) != len(ids):
            similarities = [None] * len(ids)
        dropped = len(ids) - (row["kept"] or 0)
        columns = zip(ids, row["demo_words"], row["demo_labels"], similarities, strict=True)
        demos = [StoredDemonstration(*values, kept=number >= dropped) for number, values in enumerate(columns)]
        if all(demo.similarity is not None for demo in demos):
            # The nearest are last in most prompts; reversed first, so that ties keep that order.
            demos.reverse()
            demos.sort(key=lambda demo: -(demo.similarity or 0.0))
        return tuple(demos), bool(row["input_cut"])
