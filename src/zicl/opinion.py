"""The encoder's own opinion: how similar a text is to each label's words. The embedding is there already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zicl.calibrate.scores import Scores
from zicl.demos.labels import Labels

# Cosines lie close together: the scale sentence encoders are trained with makes log-scores of them.
_SCALE = 20.0


@dataclass(frozen=True, eq=False)
class Opinion:
    """Cosines to the labels' descriptions, or to their words where none is given, as log-scores."""

    embed: Callable[[str], NDArray[np.float32]]
    vectors: NDArray[np.float32]

    @classmethod
    def on(cls, labels: Labels, embed: Callable[[str], NDArray[np.float32]]) -> Opinion:
        """The opinion on these labels."""
        return cls(embed, np.stack([embed(label.description or label.words) for label in labels]))

    def scores(self, text: str) -> Scores:
        """One score a label."""
        cosines: Scores = (self.vectors @ self.embed(text)).astype(np.float64)
        return _SCALE * cosines
