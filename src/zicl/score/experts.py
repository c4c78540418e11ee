"""Experts: whatever gives each label a log-score without a language model's prompt.

The encoder expert compares a text with what each label means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zicl.inputs.pair import Text
from zicl.prompt.labels import Labels
from zicl.score.calibration import Scores

# Cosines lie close together: the scale that sentence encoders are trained with turns them into log-scores.
SCALE = 20.0


@dataclass(frozen=True)
class EncoderExpert:
    """Score labels by the cosine of the text to each label's description, or to its words without one.

    ``identity`` is the encoder's.
    """

    embed: Callable[[Text], NDArray[np.float32]]
    identity: str
    _label_vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict, compare=False)

    def scores(self, text: Text, labels: Labels) -> Scores:
        """Return one score per label."""
        # Options that differ from text to text are not seen again: caching them all would fill the memory.
        embed = self.embed if labels.counted else self._embed_label
        vectors = np.stack([embed(label.description or label.words) for label in labels])
        cosines: Scores = (vectors @ self.embed(text)).astype(np.float64)
        return SCALE * cosines

    def _embed_label(self, words: str) -> NDArray[np.float32]:
        if words not in self._label_vectors:
            self._label_vectors[words] = self.embed(words)
        return self._label_vectors[words]
