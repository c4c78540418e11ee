"""Label demonstrations with the model's own zero-shot predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from zicl._util.random import rng
from zicl.prompt.labelers import AssignedLabel
from zicl.retrieve.index import Searchable
from zicl.score.calibration import Scores, log_prior, log_softmax
from zicl.score.pipeline import Pipeline

# Sentences of the corpus on which the prior is measured. Without it, nearly all would get the same label.
_PRIOR_SENTENCES = 64


@dataclass(frozen=True, eq=False)
class SelfLabels:
    """The zero-shot prediction for each sentence, minus the model's prior; cached with the index."""

    words: Mapping[str, tuple[str, ...]]
    zero_shot: Pipeline
    index: Searchable
    candidates: ClassVar[int] = 2

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """Return the likeliest label of each row, with its probability."""
        generator, assigned = rng(seed, key, "labels"), list[AssignedLabel]()
        for scores in log_softmax(self._scores(rows) - self._prior):
            best = int(np.argmax(scores))
            name = self.zero_shot.labels.names[best]
            choices = self.words[name]
            words = choices[int(generator.integers(len(choices)))] if len(choices) > 1 else choices[0]
            assigned.append(AssignedLabel(name, words, float(np.exp(scores[best]))))
        return assigned

    @cached_property
    def _prior(self) -> Scores:
        rows = self.index.indexed()
        count = min(_PRIOR_SENTENCES, len(rows))
        chosen = rng(0, "sentences to measure shares on").choice(len(rows), count, replace=False)
        return log_prior(self._scores([int(rows[n]) for n in chosen]))

    def _scores(self, rows: Sequence[int]) -> Scores:
        """Score rows together, always the same ones, so that not even the last digit depends on earlier calls."""
        model = self.zero_shot
        # Keyed by the model and not by its identity, which weights in half precision share.
        key = ("self-labels", model.lm, model.builder, model.labels, model.scoring, tuple(rows))

        def compute() -> Scores:
            predictions = model.run([self.index.sentence(row).text for row in rows])
            return np.array([[score.value for score in prediction.scores] for prediction in predictions])

        return self.index.cached(key, compute)
