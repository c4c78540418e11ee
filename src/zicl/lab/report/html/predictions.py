"""Single predictions out of results folders: scores as the tables have them, demonstrations by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zicl.lab.evaluate.store import Results as Stored
from zicl.lab.evaluate.store import cell_key
from zicl.lab.report.cells import Cell, Key, Results, Run
from zicl.lab.report.collect import model_names
from zicl.lab.report.html.choose import choose
from zicl.lab.report.reliability import makes_claims
from zicl.lab.report.table import row_title

_KEY = ("task", "method", "template", "inference", "seed")
_COLUMNS = ("demos", "demo_words", "demo_labels", "similarities", "kept", "input_cut")


@dataclass(frozen=True)
class Demo:
    """A demonstration: its id, the words and the class it was shown with; not ``kept`` if there was no room."""

    id: str
    words: str
    label: str
    similarity: float | None
    kept: bool


@dataclass(frozen=True)
class Prediction:
    """One answer; classes are positions among the cell's labels.

    Demonstrations stand nearest first where all have a similarity, else as in the prompt.
    """

    example: str
    gold: int
    predicted: int
    scores: tuple[float, ...]
    demos: tuple[Demo, ...]
    input_cut: bool


@dataclass(frozen=True)
class Answers:
    """What one method gave on one task with one seed: ``shown`` of ``total`` predictions, ``right`` of these right.

    ``claims`` says whether the scores are meant as probabilities. ``config`` is the method's configuration, and
    ``manifest`` that of the results folder: what the ids mean.
    """

    group: str
    key: Key
    seed: int | None
    title: str
    labels: tuple[str, ...]
    claims: bool
    total: int
    right: int
    shown: tuple[Prediction, ...]
    config: dict[str, Any]
    manifest: dict[str, Any]


def answers(group: str, folders: Sequence[Path], results: Results, most: int) -> list[Answers]:
    """At most so many predictions of every cell and seed: z-icl's first, those without demonstrations last."""
    stored = [Stored.open(folder) for folder in folders]
    names = model_names([(each.folder, each.manifest) for each in stored])
    found: list[Answers] = []
    for each, model in zip(stored, names, strict=True):
        table = each.table(_COLUMNS)
        places = _places(table)
        for key, cell in results.cells.items():
            for run in cell.runs if key.model == model else ():
                name = cell_key(key.task, key.method, key.template, key.inference, run.seed)
                if name in places:
                    rows = _Rows(table, places[name])
                    config = each.manifest["cells"].get(name, {}).get("method") or {}
                    chosen = tuple(_chosen(results, cell, run, rows, most))
                    found.append(_answers(group, cell, run, chosen, config, each.manifest))
    return sorted(found, key=_rank)


def _rank(own: Answers) -> tuple[bool, bool, bool]:
    return not any(one.demos for one in own.shown), bool(own.config.get("labelled")), own.key.method != "z-icl"


def _answers(
    group: str, cell: Cell, run: Run, chosen: tuple[Prediction, ...], config: dict[str, Any], manifest: dict[str, Any]
) -> Answers:
    return Answers(
        group=group,
        key=cell.key,
        seed=run.seed,
        title=row_title(cell.kind),
        labels=cell.labels,
        claims=makes_claims(cell),
        total=len(run.examples),
        right=int((run.gold == run.predicted).sum()),
        shown=chosen,
        config=config,
        manifest=manifest,
    )


@dataclass(frozen=True)
class _Rows:
    """The rows of one cell, read one by one: most are not shown."""

    table: Any
    places: dict[str, int]

    def demos(self, example: str) -> tuple[tuple[Demo, ...], bool]:
        row = self.table.slice(self.places[example], 1).to_pylist()[0]
        ids, found = row["demos"] or [], row["similarities"] or []
        similarities = found if len(found) == len(ids) else [None] * len(ids)
        dropped = len(ids) - (row["kept"] or 0)
        shown = [
            Demo(id_, words, label, similarity, number >= dropped)
            for number, (id_, words, label, similarity) in enumerate(
                zip(ids, row["demo_words"], row["demo_labels"], similarities, strict=True)
            )
        ]
        if all(demo.similarity is not None for demo in shown):
            # The nearest stand last, unless the method orders them otherwise.
            shown.reverse()
            shown.sort(key=lambda demo: -(demo.similarity or 0.0))
        return tuple(shown), bool(row["input_cut"])


def _chosen(results: Results, cell: Cell, run: Run, rows: _Rows, most: int) -> Iterator[Prediction]:
    names = [results.examples[number] for number in run.examples.tolist()]
    place = {name: number for number, name in enumerate(names)}
    right = dict(zip(names, (run.gold == run.predicted).tolist(), strict=True))
    for name in choose(right, most):
        at = place[name]
        demos, cut = rows.demos(name)
        scores = tuple(float(score) for score in np.round(run.scores[at], 4))
        yield Prediction(name, int(run.gold[at]), int(run.predicted[at]), scores, demos, cut)


def _places(table: Any) -> dict[str, dict[str, int]]:
    """Where the row of every cell and example is."""
    columns = [table[name].to_pylist() for name in (*_KEY, "example")]
    found: dict[str, dict[str, int]] = {}
    for number, (*cell, example) in enumerate(zip(*columns, strict=True)):
        found.setdefault(cell_key(*cell), {})[example] = number
    return found
