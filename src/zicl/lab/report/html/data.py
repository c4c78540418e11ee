"""Predictions as the page's script reads them: texts, sentences and words once each, and numbers that point to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zicl.corpus.store import Sentence
from zicl.inputs.pair import text_parts
from zicl.lab.evaluate.examples import Example
from zicl.lab.report.html.predictions import (
    NearestSentences,
    StoredDemonstration,
    StoredPrediction,
    StoredPredictions,
    nearest_sentences,
)
from zicl.lab.report.html.sources import SourceTexts
from zicl.score.pipeline import INPUT_ITSELF


@dataclass(frozen=True)
class PageData:
    """What is embedded, and what is to be said about it."""

    value: dict[str, Any]
    notes: tuple[str, ...]


@dataclass
class _StringPool:
    """Values by a key, each once, with its place."""

    places: dict[Any, int] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)

    def place(self, key: Any, value: Any) -> int:
        if key not in self.places:
            self.places[key] = len(self.values)
            self.values.append(value)
        return self.places[key]


class _Builder:
    def __init__(self, texts: SourceTexts, *, show: bool) -> None:
        self.texts, self.show = texts, show
        self.examples, self.sentences, self.words = _StringPool(), _StringPool(), _StringPool()
        self.nearest = None if texts.index is None else NearestSentences(texts.index)

    def prediction(self, cell: int, own: StoredPredictions, one: StoredPrediction) -> dict[str, Any]:
        example = self.texts.test(own.manifest, own.key.task).get(one.example)
        key = (id(own.manifest), own.key.task, one.example)
        return {
            "cell": cell,
            "example": self.examples.place(key, self._example(one.example, example)),
            "gold": one.gold,
            "predicted": one.predicted,
            # JSON has no infinity: an option that a text does not have is null.
            "scores": [score if math.isfinite(score) else None for score in one.scores],
            "demos": self._demos(own, one, example),
            "cut": int(one.input_cut),
        }

    def _example(self, name: str, example: Example | None) -> dict[str, Any]:
        if example is None or not self.show:
            return {"id": name}
        return {"id": name, "text": list(text_parts(example.text)), "options": list(example.options)}

    def _demos(self, own: StoredPredictions, one: StoredPrediction, example: Example | None) -> list[list[Any]]:
        train = own.config.get("demos") == "train"
        index = None if train else self.texts.corpus(own.manifest)
        found: Sequence[tuple[int, ...]] = [()] * len(one.demos)
        if index is not None and self.nearest is not None:
            found = self.nearest.of(None if example is None else example.text, one.demos, own.config)
        places = [
            self._input(own, example)
            if demo.id == INPUT_ITSELF and example is not None
            else self._sentence(own, demo.id, train=train)
            for demo in one.demos
        ]
        return [self._demo(own, *each) for each in zip(one.demos, places, found, strict=True)]

    def _demo(self, own: StoredPredictions, demo: StoredDemonstration, place: int, rows: tuple[int, ...]) -> list[Any]:
        similarity = None if demo.similarity is None else round(demo.similarity, 3)
        return [
            place,
            self.words.place(demo.words, demo.words),
            similarity,
            int(demo.kept),
            [self._sentence(own, str(row), train=False) for row in rows],
        ]

    def _sentence(self, own: StoredPredictions, name: str, *, train: bool) -> int:
        sentence = self.texts.sentence(own.manifest, own.key.task, name, train=train)
        return self.sentences.place((id(own.manifest), train and own.key.task, name), self._told(name, sentence))

    def _input(self, own: StoredPredictions, example: Example) -> int:
        """The input itself, where it stands among its demonstrations."""
        told = self._told(example.id, Sentence(-1, example.text, -1, 0, own.key.task, INPUT_ITSELF))
        return self.sentences.place((id(own.manifest), own.key.task, INPUT_ITSELF, example.id), told)

    def _told(self, name: str, sentence: Sentence | None) -> dict[str, str]:
        if sentence is None or not self.show:
            return {"id": name}
        text = " / ".join(text_parts(sentence.text))
        return {"id": name, "source": sentence.source, "domain": sentence.domain, "text": text}


def page_data(answers: Sequence[StoredPredictions], texts: SourceTexts, *, show: bool) -> PageData:
    """Everything the browser of predictions shows; ``show`` says whether texts may be in the page."""
    builder = _Builder(texts, show=show)
    predictions = [builder.prediction(number, own, one) for number, own in enumerate(answers) for one in own.shown]
    value = {
        "cells": [_cell(own) for own in answers],
        "examples": builder.examples.values,
        "sentences": builder.sentences.values,
        "words": builder.words.values,
        "predictions": predictions,
    }
    return PageData(value, tuple(_notes(answers, builder, value)))


def _cell(own: StoredPredictions) -> dict[str, Any]:
    return {
        "from": own.group,
        **own.key._asdict(),
        "title": own.title,
        "seed": "-" if own.seed is None else str(own.seed),
        "labels": list(own.labels),
        "claims": own.claims,
        # Whether similarities are those of the sentences that demonstrations were found through.
        "through": nearest_sentences(own.config),
        "total": own.total,
        "right": own.right,
    }


def _notes(answers: Sequence[StoredPredictions], builder: _Builder, value: Mapping[str, Any]) -> list[str]:
    total, shown = sum(own.total for own in answers), len(value["predictions"])
    notes = [f"All {total:,} predictions are here."]
    if shown < total:
        most = max(len(own.shown) for own in answers)
        notes = [
            f"{shown:,} of {total:,} predictions are here, {total - shown:,} are left out: at most {most:,} of each "
            "method, task, inference and seed, as many wrong as right ones as far as there are, so that their share "
            "says nothing. --predictions sets how many."
        ]
    if not builder.show:
        return [*notes, "Texts were left out of this page: inputs and demonstrations go by their ids."]
    inputs = _unknown(value["examples"])
    sentences = _unknown(value["sentences"])
    if inputs:
        notes.append(
            f"{inputs} inputs go by their ids: their texts are in files that were not named (--data, --data-dir)."
        )
    if sentences:
        notes.append(
            f"{sentences} sentences go by their ids: they are not in the corpus (--corpus) or the training files "
            "(--train, --data-dir) that were named."
        )
    if builder.nearest is not None and builder.nearest.unasked:
        notes.append(
            "Which sentence a demonstration was found through is not known for all: where it has one on both sides, "
            f"either may be it. {builder.nearest.unasked}"
        )
    return notes


def _unknown(values: Sequence[Mapping[str, Any]]) -> str:
    without = sum("text" not in value for value in values)
    return "" if not without else "All" if without == len(values) else f"{without:,} of {len(values):,}"
