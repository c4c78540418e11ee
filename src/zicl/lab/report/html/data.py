"""The data of the page's prediction browser: texts, sentences and words once each, referred to by position."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zicl.corpus.store import Sentence
from zicl.exceptions import ModelError, UnknownNameError
from zicl.inputs.pair import Text, text_parts
from zicl.lab.evaluate.examples import Example
from zicl.lab.report.html.predictions import StoredDemonstration, StoredPrediction, StoredPredictions
from zicl.lab.report.html.sources import SourceTexts
from zicl.retrieve.index import Index
from zicl.score.pipeline import INPUT_ITSELF

# Similarities of the same texts, computed on two machines, differ by less.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class PageData:
    """The JSON value embedded in the page, and the notes on it."""

    value: dict[str, Any]
    notes: tuple[str, ...]


def page_data(cells: Sequence[StoredPredictions], texts: SourceTexts, *, show_texts: bool) -> PageData:
    """Return everything that the prediction browser shows, with texts or only ids."""
    builder = _Builder(texts, show_texts=show_texts)
    predictions = [builder.prediction(number, cell, one) for number, cell in enumerate(cells) for one in cell.shown]
    value = {
        "cells": [_cell_value(cell) for cell in cells],
        "examples": builder.examples.values,
        "sentences": builder.sentences.values,
        "words": builder.words.values,
        "predictions": predictions,
    }
    return PageData(value, tuple(_notes(cells, builder, value)))


def _cell_value(cell: StoredPredictions) -> dict[str, Any]:
    return {
        "from": cell.group,
        **cell.key._asdict(),
        "title": cell.title,
        "seed": "-" if cell.seed is None else str(cell.seed),
        "labels": list(cell.labels),
        "probabilities": cell.has_probabilities,
        # Whether similarities are those of the sentences that demonstrations were found through.
        "through": shows_neighbours(cell.config),
        "total": cell.total,
        "right": cell.correct,
    }


@dataclass
class _Pool:
    """Values by key, each stored once."""

    positions: dict[Any, int] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)

    def add(self, key: Any, value: Any) -> int:
        """Return the position of the value of a key, which is added if it is new."""
        if key not in self.positions:
            self.positions[key] = len(self.values)
            self.values.append(value)
        return self.positions[key]


class _Builder:
    def __init__(self, texts: SourceTexts, *, show_texts: bool) -> None:
        self.texts, self.show_texts = texts, show_texts
        self.examples, self.sentences, self.words = _Pool(), _Pool(), _Pool()
        self.nearest = None if texts.index is None else NearestSentences(texts.index)

    def prediction(self, number: int, cell: StoredPredictions, one: StoredPrediction) -> dict[str, Any]:
        example = self.texts.test(cell.manifest, cell.key.task).get(one.example)
        value: dict[str, Any] = {"id": one.example}
        if example is not None and self.show_texts:
            value |= {"text": list(text_parts(example.text)), "options": list(example.options)}
        return {
            "cell": number,
            "example": self.examples.add((id(cell.manifest), cell.key.task, one.example), value),
            "gold": one.gold,
            "predicted": one.predicted,
            # JSON has no infinity: an option that a text does not have is null.
            "scores": [score if math.isfinite(score) else None for score in one.scores],
            "demos": self._demos(cell, one, example),
            "cut": int(one.input_cut),
        }

    def _demos(self, cell: StoredPredictions, one: StoredPrediction, example: Example | None) -> list[list[Any]]:
        train = cell.config.get("demos") == "train"
        nearest: Sequence[tuple[int, ...]] = [()] * len(one.demos)
        if self.nearest is not None and not train and self.texts.corpus(cell.manifest) is not None:
            nearest = self.nearest.of(None if example is None else example.text, one.demos, cell.config)
        return [
            [
                self._input(cell, example)
                if demo.id == INPUT_ITSELF and example is not None
                else self._sentence(cell, demo.id, train=train),
                self.words.add(demo.words, demo.words),
                None if demo.similarity is None else round(demo.similarity, 3),
                int(demo.kept),
                [self._sentence(cell, str(row), train=False) for row in rows],
            ]
            for demo, rows in zip(one.demos, nearest, strict=True)
        ]

    def _sentence(self, cell: StoredPredictions, name: str, *, train: bool) -> int:
        sentence = self.texts.sentence(cell.manifest, cell.key.task, name, train=train)
        key = (id(cell.manifest), train and cell.key.task, name)
        return self.sentences.add(key, self._sentence_value(name, sentence))

    def _input(self, cell: StoredPredictions, example: Example) -> int:
        """Add the input itself, which is one of its demonstrations."""
        sentence = Sentence(-1, example.text, -1, 0, cell.key.task, INPUT_ITSELF)
        key = (id(cell.manifest), cell.key.task, INPUT_ITSELF, example.id)
        return self.sentences.add(key, self._sentence_value(example.id, sentence))

    def _sentence_value(self, name: str, sentence: Sentence | None) -> dict[str, str]:
        if sentence is None or not self.show_texts:
            return {"id": name}
        text = " / ".join(text_parts(sentence.text))
        return {"id": name, "source": sentence.source, "domain": sentence.domain, "text": text}


def _notes(cells: Sequence[StoredPredictions], builder: _Builder, value: Mapping[str, Any]) -> list[str]:
    total, shown = sum(cell.total for cell in cells), len(value["predictions"])
    notes = [f"All {total:,} predictions are here."]
    if shown < total:
        most = max(len(cell.shown) for cell in cells)
        notes = [
            f"{shown:,} of {total:,} predictions are here, {total - shown:,} are left out: at most {most:,} of each "
            "method, task, inference and seed, as many wrong as right ones as far as there are, so that their share "
            "says nothing. --predictions sets how many."
        ]
    if not builder.show_texts:
        return [*notes, "Texts were left out of this page: inputs and demonstrations go by their ids."]
    if inputs := _count_without_text(value["examples"]):
        notes.append(
            f"{inputs} inputs go by their ids: their texts are in files that were not named (--data, --data-dir)."
        )
    if sentences := _count_without_text(value["sentences"]):
        notes.append(
            f"{sentences} sentences go by their ids: they are not in the corpus (--corpus) or the training files "
            "(--train, --data-dir) that were named."
        )
    if builder.nearest is not None and builder.nearest.error:
        notes.append(
            "Which sentence a demonstration was found through is not known for all: where it has one on both sides, "
            f"either may be it. {builder.nearest.error}"
        )
    return notes


def _count_without_text(values: Sequence[Mapping[str, Any]]) -> str:
    without = sum("text" not in value for value in values)
    return "" if not without else "All" if without == len(values) else f"{without:,} of {len(values):,}"


# -- nearest sentences -------------------------------------------------------------------------------


def shows_neighbours(config: Mapping[str, Any]) -> bool:
    """Return whether a method shows other sentences than the nearest ones it finds them through."""
    return _retriever(config) in ("physical", "domain-random")


def _retriever(config: Mapping[str, Any]) -> Any:
    return (config.get("retrieval") or {}).get("method")


class NearestSentences:
    """Find the nearest sentences that demonstrations were found through, which rows do not store.

    The corpus is searched again, once per text. If that fails, ``error`` says why, and both sentences beside a
    demonstration are returned.
    """

    def __init__(self, index: Index) -> None:
        self.index, self.error = index, ""
        self._similarities: dict[Text, dict[int, float]] = {}

    def of(
        self, text: Text | None, demos: Sequence[StoredDemonstration], config: Mapping[str, Any]
    ) -> list[tuple[int, ...]]:
        """Return the row of each demonstration's nearest sentence; several if it may be any of them."""
        # Planted sentences are not in the corpus, and any of them may be the nearest.
        retriever = None if config.get("planted") else _retriever(config)
        rows = [int(demo.id) if demo.id.isdecimal() else -1 for demo in demos]
        if retriever in ("nearest", "diverse"):
            return [(row,) if row >= 0 else () for row in rows]
        if retriever == "domain-random" and text is not None:
            return self._in_same_domain(rows, demos, self._search(text, demos))
        if retriever != "physical":
            return [()] * len(demos)
        retrieval = config.get("retrieval") or {}
        find = self.index.previous if retrieval.get("neighbours") == "domain" else self.index.neighbour
        beside = [self._beside(row, find) for row in rows]
        if text is None or not any(len(candidates) > 1 for candidates in beside):
            return beside
        similarities = self._search(text, demos)
        matches = [_with_similarity(rows, demo, similarities) for rows, demo in zip(beside, demos, strict=True)]
        return [match if len(match) == 1 else rows for match, rows in zip(matches, beside, strict=True)]

    def _in_same_domain(
        self, rows: Sequence[int], demos: Sequence[StoredDemonstration], similarities: dict[int, float]
    ) -> list[tuple[int, ...]]:
        """Return the only sentence of each demonstration's domain that has its similarity, if there is just one."""
        domains = {row: self.index.corpus.domain(row) for row in similarities}
        nearest = list[tuple[int, ...]]()
        for row, demo in zip(rows, demos, strict=True):
            domain = self.index.corpus.domain(row) if row >= 0 else None
            match = _with_similarity([other for other in domains if domains[other] == domain], demo, similarities)
            nearest.append(match if len(match) == 1 else ())
        return nearest

    def _beside(self, row: int, find: Callable[[int], int | None]) -> tuple[int, ...]:
        """Return the sentences whose physical neighbour this one is."""
        around = [other for other in (row - 1, row + 1) if 0 <= other < len(self.index.corpus)] if row >= 0 else []
        return tuple(other for other in around if find(other) == row)

    def _search(self, text: Text, demos: Sequence[StoredDemonstration]) -> dict[int, float]:
        """Return the similarities of all sentences at least as near as the farthest of the demonstrations."""
        lowest = min((demo.similarity for demo in demos if demo.similarity is not None), default=1.0)
        known = self._similarities.setdefault(text, {})
        if self.error or (known and min(known.values()) < lowest - _TOLERANCE):
            return known
        try:
            for hit in self.index.nearest(text):
                known[hit.row] = hit.similarity
                if hit.similarity < lowest - _TOLERANCE:
                    break
        except (ModelError, UnknownNameError) as error:
            # The page is still right: it then names both sentences beside a demonstration.
            self.error = str(error)
        return known


def _with_similarity(rows: Sequence[int], demo: StoredDemonstration, similarities: dict[int, float]) -> tuple[int, ...]:
    """Return the rows that have the similarity of a demonstration."""
    if demo.similarity is None:
        return ()
    return tuple(row for row in rows if abs(similarities.get(row, 2.0) - demo.similarity) < _TOLERANCE)
