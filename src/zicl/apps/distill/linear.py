"""What is left of the language model: one row of weights a label, over the encoder's vectors."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zicl.score.calibration import Scores


@dataclass(frozen=True, eq=False)
class Linear:
    """A score for each label, in the labels' order: its weights times the vector, plus its offset."""

    weights: NDArray[np.float64]
    offsets: NDArray[np.float64]

    def scores(self, vectors: NDArray[np.float32]) -> Scores:
        """One row a vector, one column a label."""
        found: Scores = vectors.astype(np.float64) @ self.weights.T + self.offsets
        return found

    @cached_property
    def identity(self) -> str:
        """A hash of all numbers."""
        parts = (np.array(self.weights.shape, dtype="<i8"), self.weights.astype("<f8"), self.offsets.astype("<f8"))
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
