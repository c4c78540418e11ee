"""The encoder's own opinion: how similar a text is to each label's description, or its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zicl.prompt.labels import Labels
from zicl.score.calibration import Scores

# Cosines lie close together: the scale sentence encoders are trained with makes log-scores of them.
SCALE = 20.0
Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Opinion:
    """Cosines to the labels' descriptions, or to their words where none is given, as log-scores.

    ``identity`` is the encoder's.
    """

    embed: Callable[[str], Vector]
    identity: str
    _known: dict[str, Vector] = field(default_factory=dict, compare=False)

    def scores(self, text: str, labels: Labels) -> Scores:
        """One score a label."""
        # Options of a text's own are not seen again: to remember them all would fill the memory.
        embed = self.embed if labels.counted else self._label
        vectors = np.stack([embed(label.description or label.words) for label in labels])
        cosines: Scores = (vectors @ self.embed(text)).astype(np.float64)
        return SCALE * cosines

    def _label(self, words: str) -> Vector:
        if words not in self._known:
            self._known[words] = self.embed(words)
        return self._known[words]
