"""One text from input to result: retrieve → label → prompt → score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zicl.config import Scoring
from zicl.demos.labeler import Drawn, Labeler
from zicl.demos.labels import Labels
from zicl.demos.prompt import Demonstration, PromptBuilder
from zicl.lm.base import BranchScores, LanguageModel, Progress
from zicl.results import LabelScore, Prepared, Result, Shown
from zicl.retrieve.base import Query, Retrieved, Retriever
from zicl.retrieve.index import Searchable
from zicl.retrieve.random import SHARED_ITEM

_REMEMBERED = 65_536


@dataclass(frozen=True)
class Pipeline:
    """Everything that was chosen, ready to run. No text's result depends on another text."""

    labels: Labels
    builder: PromptBuilder
    lm: LanguageModel
    scoring: Scoring
    k: int = 0
    seed: int = 0
    index: Searchable | None = None
    retriever: Retriever | None = None
    labeler: Labeler | None = None

    def run(self, texts: Sequence[str], progress: Progress | None = None) -> list[Result]:
        """Classify texts, in their order."""
        prepared = [self.prepare(text) for text in texts]
        scores = self.lm.score([item.prompt for item in prepared], progress)
        return [
            Result(item, label_scores(self.labels, score, self.scoring.reduce))
            for item, score in zip(prepared, scores, strict=True)
        ]

    def prepare(self, text: str) -> Prepared:
        """The demonstrations and the prompt of one text."""
        text = text.strip()
        shown = self._demonstrations(text)
        prompt = self.builder.build(text, [Demonstration(s.sentence.text, s.words) for s in shown], self.labels.words)
        return Prepared(text, tuple(_mark_kept(shown, prompt.dropped)), prompt)

    def retrieve(self, text: str) -> list[Retrieved]:
        """The rows for one text, nearest first."""
        if self.k == 0 or self.index is None or self.retriever is None:
            return []
        query, memory = Query(text, self.seed), self.index.found
        key = (self.retriever, query, self.k)
        if key not in memory:
            if len(memory) >= _REMEMBERED:
                memory.pop(next(iter(memory)))
            memory[key] = self.retriever.retrieve(self.index, query, self.k)
        found: list[Retrieved] = memory[key]
        return found

    def _demonstrations(self, text: str) -> list[Shown]:
        """Farthest first: the nearest demonstration stands next to the test input."""
        found = self.retrieve(text)
        if not found or self.labeler is None or self.index is None:
            return []
        # Random inputs share one draw of labels, as they share their sentences.
        key = SHARED_ITEM if getattr(self.retriever, "shared", False) else text
        labels = self.labeler.label([item.row for item in found], self.seed, key)
        return [self._shown(item, label) for item, label in zip(found, labels, strict=True)][::-1]

    def _shown(self, item: Retrieved, drawn: Drawn) -> Shown:
        assert self.index is not None
        nearest = None if item.nearest is None else self.index.sentence(item.nearest)
        return Shown(self.index.sentence(item.row), nearest, item.similarity, drawn.label, drawn.words)


def label_scores(labels: Labels, scores: BranchScores, reduce: str) -> tuple[LabelScore, ...]:
    """What each label got: the sum over its scored tokens, and what is compared."""
    rows = []
    for label, row in zip(labels, scores, strict=True):
        # Summed in double precision: the order of the sum must not show in the result.
        total = float(np.sum(row, dtype=np.float64))
        rows.append(LabelScore(label.name, total, len(row), total if reduce == "sum" else total / len(row)))
    return tuple(rows)


def _mark_kept(shown: Sequence[Shown], dropped: int) -> list[Shown]:
    """The farthest demonstrations were dropped when the prompt was cut."""
    return [
        Shown(s.sentence, s.nearest, s.similarity, s.label, s.words, kept=number >= dropped)
        for number, s in enumerate(shown)
    ]
