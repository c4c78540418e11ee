"""Which predictions a page shows where it cannot show all: as many right as wrong ones, the same texts for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zicl._util.random import stable_hash
from zicl.exceptions import ModelError
from zicl.inputs.pair import Text
from zicl.lab.evaluate.store import ResultsFolder as Stored
from zicl.lab.evaluate.store import cell_key
from zicl.lab.report.cells import CellKey, ReportCell, ResultSet, SeedRun
from zicl.lab.report.collect import model_names
from zicl.lab.report.reliability import has_probabilities
from zicl.lab.report.table import row_title
from zicl.retrieve.index import Index

# So many a cell, and in all, unless somebody asks for another number.
PER_CELL, IN_ALL = 200, 10_000


def limit(cells: int, asked: int | None) -> int:
    """How many predictions of each cell are shown at most.

    >>> limit(3, None), limit(500, None), limit(500, 7)
    (200, 20, 7)
    """
    return asked if asked is not None else max(1, min(PER_CELL, IN_ALL // max(cells, 1)))


def choose(right: Mapping[str, bool], most: int) -> list[str]:
    """At most so many examples, half of them right and half wrong as far as there are, in a random order.

    The order depends on the names alone, so that two methods mostly show the same texts, and a larger number
    keeps all of a smaller one.

    >>> sorted(choose({"a": True, "b": True, "c": True, "d": False}, 2), key=lambda name: name == "d")[1]
    'd'
    """
    ordered = sorted(right, key=lambda name: (stable_hash("shown", name), name))
    sides = [[name for name in ordered if right[name] is side] for side in (True, False)]
    # The r-th of either side stands at r: one right, one wrong, and what is left of the longer side at the end.
    places = [(rank, side, name) for side, names in enumerate(sides) for rank, name in enumerate(names)]
    return [name for _, _, name in sorted(places)[:most]]


# -- Single predictions out of results folders: scores as the tables have them, demonstrations by their ids.


_KEY = ("task", "method", "template", "inference", "seed")
_COLUMNS = ("demos", "demo_words", "demo_labels", "similarities", "kept", "input_cut")


@dataclass(frozen=True)
class StoredDemonstration:
    """A demonstration: its id, the words and the class it was shown with; not ``kept`` if there was no room."""

    id: str
    words: str
    label: str
    similarity: float | None
    kept: bool


@dataclass(frozen=True)
class StoredPrediction:
    """One answer; classes are positions among the cell's labels.

    Demonstrations stand nearest first where all have a similarity, else as in the prompt.
    """

    example: str
    gold: int
    predicted: int
    scores: tuple[float, ...]
    demos: tuple[StoredDemonstration, ...]
    input_cut: bool


@dataclass(frozen=True)
class StoredPredictions:
    """What one method gave on one task with one seed: ``shown`` of ``total`` predictions, ``right`` of these right.

    ``claims`` says whether the scores are meant as probabilities. ``config`` is the method's configuration, and
    ``manifest`` that of the results folder: what the ids mean.
    """

    group: str
    key: CellKey
    seed: int | None
    title: str
    labels: tuple[str, ...]
    claims: bool
    total: int
    right: int
    shown: tuple[StoredPrediction, ...]
    config: dict[str, Any]
    manifest: dict[str, Any]


def stored_predictions(group: str, folders: Sequence[Path], results: ResultSet, most: int) -> list[StoredPredictions]:
    """At most so many predictions of every cell and seed: z-icl's first, those without demonstrations last."""
    stored = [Stored.open(folder) for folder in folders]
    names = model_names([(each.folder, each.manifest) for each in stored])
    found: list[StoredPredictions] = []
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


def _rank(own: StoredPredictions) -> tuple[bool, bool, bool]:
    return not any(one.demos for one in own.shown), bool(own.config.get("labelled")), own.key.method != "z-icl"


def _answers(
    group: str,
    cell: ReportCell,
    run: SeedRun,
    chosen: tuple[StoredPrediction, ...],
    config: dict[str, Any],
    manifest: dict[str, Any],
) -> StoredPredictions:
    return StoredPredictions(
        group=group,
        key=cell.key,
        seed=run.seed,
        title=row_title(cell.kind),
        labels=cell.labels,
        claims=has_probabilities(cell),
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

    def demos(self, example: str) -> tuple[tuple[StoredDemonstration, ...], bool]:
        row = self.table.slice(self.places[example], 1).to_pylist()[0]
        ids, found = row["demos"] or [], row["similarities"] or []
        similarities = found if len(found) == len(ids) else [None] * len(ids)
        dropped = len(ids) - (row["kept"] or 0)
        shown = [
            StoredDemonstration(id_, words, label, similarity, number >= dropped)
            for number, (id_, words, label, similarity) in enumerate(
                zip(ids, row["demo_words"], row["demo_labels"], similarities, strict=True)
            )
        ]
        if all(demo.similarity is not None for demo in shown):
            # The nearest stand last, unless the method orders them otherwise.
            shown.reverse()
            shown.sort(key=lambda demo: -(demo.similarity or 0.0))
        return tuple(shown), bool(row["input_cut"])


def _chosen(results: ResultSet, cell: ReportCell, run: SeedRun, rows: _Rows, most: int) -> Iterator[StoredPrediction]:
    names = [results.examples[number] for number in run.examples.tolist()]
    place = {name: number for number, name in enumerate(names)}
    right = dict(zip(names, (run.gold == run.predicted).tolist(), strict=True))
    for name in choose(right, most):
        at = place[name]
        demos, cut = rows.demos(name)
        scores = tuple(float(score) for score in np.round(run.scores[at], 4))
        yield StoredPrediction(name, int(run.gold[at]), int(run.predicted[at]), scores, demos, cut)


def _places(table: Any) -> dict[str, dict[str, int]]:
    """Where the row of every cell and example is."""
    columns = [table[name].to_pylist() for name in (*_KEY, "example")]
    found: dict[str, dict[str, int]] = {}
    for number, (*cell, example) in enumerate(zip(*columns, strict=True)):
        found.setdefault(cell_key(*cell), {})[example] = number
    return found


# -- The nearest sentences that demonstrations were found through: rows keep only what was shown.


# Similarities of one text and sentence, computed on two machines, differ by less.
_SAME = 1e-4


def nearest_sentences(config: dict[str, Any]) -> bool:
    """Whether a method shows other sentences than the nearest ones it finds them through."""
    return _method(config) in ("physical", "domain-random")


def _method(config: dict[str, Any]) -> Any:
    return (config.get("retrieval") or {}).get("method")


class NearestSentences:
    """Finds them by asking the corpus again, once a text; where it cannot be asked, both sentences beside remain."""

    def __init__(self, index: Index) -> None:
        self.index, self.unasked = index, ""
        self._found: dict[Text, dict[int, float]] = {}

    def of(
        self, text: Text | None, demos: Sequence[StoredDemonstration], config: dict[str, Any]
    ) -> list[tuple[int, ...]]:
        """For each demonstration the row of its nearest sentence; several where it may be any of them."""
        method = _method(config)
        rows = [int(demo.id) if demo.id.isdecimal() else -1 for demo in demos]
        if method in ("nearest", "diverse"):
            return [(row,) if row >= 0 else () for row in rows]
        if method == "domain-random" and text is not None:
            return self._same_domain(rows, demos, self._asked(text, demos))
        if method != "physical":
            return [()] * len(demos)
        beside = [self._beside(row) for row in rows]
        if text is None or not any(len(each) > 1 for each in beside):
            return beside
        similarities = self._asked(text, demos)
        return [_those(each, demo, similarities) for each, demo in zip(beside, demos, strict=True)]

    def _same_domain(
        self, rows: Sequence[int], demos: Sequence[StoredDemonstration], similarities: dict[int, float]
    ) -> list[tuple[int, ...]]:
        """The sentence of a demonstration's domain that has its similarity, where there is just one."""
        domains = {row: self.index.corpus.domain(row) for row in similarities}
        found = list[tuple[int, ...]]()
        for row, demo in zip(rows, demos, strict=True):
            own = self.index.corpus.domain(row) if row >= 0 else None
            same = _alike([other for other, domain in domains.items() if domain == own], demo, similarities)
            found.append(tuple(same) if len(same) == 1 else ())
        return found

    def _beside(self, row: int) -> tuple[int, ...]:
        """The sentences whose physical neighbour this one is."""
        around = [other for other in (row - 1, row + 1) if 0 <= other < len(self.index.corpus)] if row >= 0 else []
        return tuple(other for other in around if self.index.neighbour(other) == row)

    def _asked(self, text: Text, demos: Sequence[StoredDemonstration]) -> dict[int, float]:
        """The similarities of all sentences that are as near as the farthest of these was found through."""
        lowest = min((demo.similarity for demo in demos if demo.similarity is not None), default=1.0)
        known = self._found.setdefault(text, {})
        if self.unasked or (known and min(known.values()) < lowest - _SAME):
            return known
        try:
            for hit in self.index.nearest(text):
                known[hit.row] = hit.similarity
                if hit.similarity < lowest - _SAME:
                    break
        except ModelError as error:
            # The page is still right without: it then names both sentences beside a demonstration.
            self.unasked = str(error)
        return known


def _those(beside: tuple[int, ...], demo: StoredDemonstration, similarities: dict[int, float]) -> tuple[int, ...]:
    same = _alike(beside, demo, similarities)
    return tuple(same) if len(same) == 1 else beside


def _alike(rows: Sequence[int], demo: StoredDemonstration, similarities: dict[int, float]) -> list[int]:
    """Those of the rows that have the similarity of a demonstration."""
    if demo.similarity is None:
        return []
    return [row for row in rows if abs(similarities.get(row, 2.0) - demo.similarity) < _SAME]
