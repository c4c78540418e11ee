"""Labels for demonstrations from the model itself: what it answers for them without demonstrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from zicl._util.random import rng
from zicl.prompt.labelers import Drawn
from zicl.retrieve.index import Searchable
from zicl.score.calibration import Scores, log_prior, log_softmax
from zicl.score.pipeline import Pipeline

# Sentences of the corpus on which the shares of the answers are measured. Without that nearly all would be one label.
_SAMPLE = 64


@dataclass(frozen=True, eq=False)
class SelfLabels:
    """The zero-shot answer for each sentence, less what the model answers anyhow; remembered with the index."""

    words: Mapping[str, tuple[str, ...]]
    zero_shot: Pipeline
    index: Searchable
    candidates: ClassVar[int] = 2

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[Drawn]:
        """The likeliest label of each row, with its probability."""
        generator, drawn = rng(seed, key, "labels"), list[Drawn]()
        for scores in log_softmax(self._scores(rows) - self._prior):
            best = int(np.argmax(scores))
            name = self.zero_shot.labels.names[best]
            shown = self.words[name]
            words = shown[int(generator.integers(len(shown)))] if len(shown) > 1 else shown[0]
            drawn.append(Drawn(name, words, float(np.exp(scores[best]))))
        return drawn

    @cached_property
    def _prior(self) -> Scores:
        rows = self.index.indexed()
        count = min(_SAMPLE, len(rows))
        chosen = rng(0, "sentences to measure shares on").choice(len(rows), count, replace=False)
        return log_prior(self._scores([int(rows[n]) for n in chosen]))

    def _scores(self, rows: Sequence[int]) -> Scores:
        """Always asked about together, so that not even the last digit depends on what was asked before."""
        asked = self.zero_shot
        # By the model itself and not by its identity, which weights in half precision share.
        key = ("own labels", asked.lm, asked.builder, asked.labels, asked.scoring, tuple(rows))
        if key not in self.index.found:
            results = self.zero_shot.run([self.index.sentence(row).text for row in rows])
            self.index.found[key] = np.array([[score.value for score in result.scores] for result in results])
        found: Scores = self.index.found[key]
        return found
