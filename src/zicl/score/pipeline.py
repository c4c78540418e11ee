"""One text from input to result: retrieve → label → prompt → score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zicl.config import Order, Scoring
from zicl.exceptions import ConfigError, TextError
from zicl.inputs.pair import is_pair, join, plain
from zicl.lm.base import BranchScores, LanguageModel, Progress
from zicl.prompt.builder import Demonstration, Prompt, PromptBuilder
from zicl.prompt.labelers import Drawn, Labeler, RandomLabels
from zicl.prompt.labels import Labels
from zicl.prompt.order import standing
from zicl.prompt.template import Template
from zicl.retrieve.clusters import Clusters
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import Query, Retrieved, Retriever
from zicl.retrieve.strategies.random import SHARED_ITEM
from zicl.score.calibration import log_prior
from zicl.score.identical import check_kept, put_among
from zicl.score.probes import Probes
from zicl.score.results import LabelScore, Prepared, Result, Shown

_REMEMBERED = 65_536


@dataclass(frozen=True)
class Pipeline:
    """One way to ask about a text, with everything that was chosen. No text's result depends on another text.

    ``assignment`` numbers the draws of labels for the same demonstrations; inputs of one of the ``clusters`` share
    their demonstrations and labels; ``probes`` are scored beside each text and taken off its scores. Labels are drawn
    with the seed, or with a ``label_seed`` of their own.
    """

    labels: Labels
    builder: PromptBuilder
    lm: LanguageModel
    scoring: Scoring
    k: int = 0
    seed: int = 0
    index: Searchable | None = None
    retriever: Retriever | None = None
    labeler: Labeler | None = None
    assignment: int = 0
    clusters: Clusters | None = None
    probes: Probes | None = None
    order: Order = "nearest-last"
    label_seed: int | None = None

    def run(self, texts: Sequence[str], progress: Progress | None = None) -> list[Result]:
        """Classify texts, in their order."""
        prepared = [self.prepare(text) for text in texts]
        scores = self.lm.score([item.prompt for item in prepared], progress)
        return [self.result(item, score) for item, score in zip(prepared, scores, strict=True)]

    def result(self, prepared: Prepared, scores: BranchScores) -> Result:
        """What the scores of a prompt's branches say; what the probes got is taken off."""
        labels, reduce = prepared.labels, self.scoring.reduce
        count = len(labels)
        own = label_scores(labels, scores[:count], reduce)
        if not prepared.prompt.probes:
            return Result(prepared, own)
        probes = [
            label_scores(labels, scores[start : start + count], reduce) for start in range(count, len(scores), count)
        ]
        base = log_prior(np.array([[score.value for score in row] for row in probes]))
        calibrated = tuple(replace(s, value=s.value - float(b)) for s, b in zip(own, base, strict=True))
        return Result(prepared, calibrated, probes=tuple(tuple(s.log_likelihood for s in row) for row in probes))

    def prepare(self, text: str, labels: Labels | None = None, identical: Drawn | None = None) -> Prepared:
        """The demonstrations and the prompt of one text; ``labels`` are its own, where texts differ in them.

        With ``identical`` the text itself takes the place of one of its demonstrations, under that label.
        """
        text, labels = text.strip(), labels or self.labels
        check_fields(self.builder.template, text)
        shown = self._demonstrations(text, labels)
        prompt = self._write(text, shown, labels)
        if identical is not None:
            shown, place = put_among(shown, prompt.shown, text, identical, self.seed)
            prompt = self._write(text, shown, labels, keep=place)
            check_kept(place, prompt.shown)
        return Prepared(text, _as_they_stand(shown, prompt), prompt, labels, self.builder.inference, self.assignment)

    def _write(self, text: str, shown: Sequence[Shown], labels: Labels, keep: int | None = None) -> Prompt:
        demos = [Demonstration(self.demo_text(s), s.words) for s in shown]
        probes: list[str] = []
        if self.probes is not None:
            probes = self.probes.inputs([plain(demo.text) for demo in demos], self.seed, self._item(text))
            if self.builder.template.two_fields:
                probes = [_in_two(probe) for probe in probes]
        order = standing(self.order, len(demos), self.seed, self._item(text))
        return self.builder.build(text, demos, labels.words, probes, order, keep)

    def demo_text(self, shown: Shown) -> str:
        """The sentence; for pairs it and the nearest sentence it stands beside, in their order."""
        if not self.builder.template.two_fields or is_pair(shown.sentence.text):
            return shown.sentence.text
        if shown.nearest is None or shown.nearest.row == shown.sentence.row:
            raise ConfigError(
                "a demonstration of a pair is a sentence with its physical neighbour, and this retrieval gives none",
                hint="use the retrieval 'physical' (the method z-icl), or no-demos",
            )
        first, second = sorted((shown.nearest, shown.sentence), key=lambda sentence: sentence.row)
        return join(first.text, second.text)

    def retrieve(self, text: str) -> list[Retrieved]:
        """The rows for one text, nearest first."""
        if self.k == 0 or self.index is None or self.retriever is None:
            return []
        candidates = self.k if self.labeler is None else self.k * self.labeler.candidates
        query, memory = self._query(text), self.index.found
        key = (self.retriever, query, candidates)
        if key not in memory:
            if len(memory) >= _REMEMBERED:
                memory.pop(next(iter(memory)))
            memory[key] = self.retriever.retrieve(self.index, query, candidates)
        found: list[Retrieved] = memory[key]
        return found

    def _query(self, text: str) -> Query:
        if self.clusters is None or self.index is None:
            return Query(text, self.seed)
        middle = self.clusters.nearest(self.index.embed(text))
        return Query(text, self.seed, middle, middle)

    def _item(self, text: str) -> str:
        """What the draws for a text are derived from: those that share demonstrations share their labels."""
        return SHARED_ITEM if getattr(self.retriever, "shared", False) else self._query(text).key

    def _demonstrations(self, text: str, among: Labels) -> list[Shown]:
        """Farthest first: the nearest demonstration stands next to the test input."""
        found = self.retrieve(text)
        if not found or self.labeler is None or self.index is None:
            return []
        key = self._item(text) if self.assignment == 0 else f"{self._item(text)} #{self.assignment}"
        labeler = self._labeler_among(among)
        seed = self.seed if self.label_seed is None else self.label_seed
        labels = labeler.label([item.row for item in found], seed, key)
        chosen = sorted(_surest(labels, self.k))
        return [self._shown(found[n], labels[n]) for n in chosen][::-1]

    def _labeler_among(self, among: Labels) -> Labeler:
        """What labels the demonstrations of a text that may have only some of the labels."""
        assert self.labeler is not None
        if among.names == self.labels.names:
            return self.labeler
        if self.labeler.candidates > 1:
            raise ConfigError("the model's own labels are for one set of labels", hint="labelling.source = 'random'")
        if not isinstance(self.labeler, RandomLabels):
            return self.labeler
        return replace(self.labeler, words={name: self.labeler.words[name] for name in among.names})

    def _shown(self, item: Retrieved, drawn: Drawn) -> Shown:
        assert self.index is not None
        nearest = None if item.nearest is None else self.index.sentence(item.nearest)
        return Shown(self.index.sentence(item.row), nearest, item.similarity, drawn.label, drawn.words)


def check_fields(template: Template, text: str) -> None:
    """The text is a pair where the template has two fields, and no pair where it has one."""
    if template.two_fields != is_pair(text):
        raise TextError(
            "a pair of texts needs a template with {first} and {second}, one text a template with {input}",
            hint="--template pair, or your own: 'Premise: {first}\\nHypothesis: {second}|Answer: {label}'",
        )


def _in_two(probe: str) -> str:
    """An input without content for a template of two fields: its words one half each, a single one in both."""
    words = probe.split()
    half = len(words) // 2
    return join(" ".join(words[:half]), " ".join(words[half:])) if half else join(probe, probe)


def _surest(labels: Sequence[Drawn], k: int) -> list[int]:
    """The k surest labels; the nearer of two alike. Labels that were drawn are all alike."""
    return sorted(range(len(labels)), key=lambda n: -(labels[n].confidence or 0.0))[:k]


def label_scores(labels: Labels, scores: BranchScores, reduce: str) -> tuple[LabelScore, ...]:
    """What each label got: the sum over its scored tokens, and what is compared."""
    rows = []
    for label, row in zip(labels, scores, strict=True):
        # Summed in double precision: the order of the sum must not show in the result.
        total = float(np.sum(row, dtype=np.float64))
        rows.append(LabelScore(label.name, total, len(row), total if reduce == "sum" else total / len(row)))
    return tuple(rows)


def _as_they_stand(shown: Sequence[Shown], prompt: Prompt) -> tuple[Shown, ...]:
    """What was dropped when the prompt was cut, then the rest as it stands there."""
    dropped = [replace(s, kept=False) for number, s in enumerate(shown) if number not in prompt.shown]
    return (*dropped, *(shown[number] for number in prompt.shown))
