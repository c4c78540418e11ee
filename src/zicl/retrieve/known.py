"""Vectors that need not be computed again: those of another index whose sentences are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Known:
    """For each sentence to index, in their order, the number of its vector in ``index``, -1 where there is none.

    Sentences beyond the last number are new.
    """

    index: Any
    numbers: NDArray[np.int64]

    def complete(
        self, start: int, rows: NDArray[np.int64], encode: Callable[[Sequence[int]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """The vectors of the sentences from place ``start`` on, which stand in ``rows``; the new ones are encoded."""
        numbers = np.full(len(rows), -1, dtype=np.int64)
        own = self.numbers[start : start + len(rows)]
        numbers[: len(own)] = own
        if np.all(numbers < 0):
            return encode(rows.tolist())
        vectors = np.empty((len(rows), self.index.d), dtype=np.float32)
        vectors[numbers >= 0] = self.index.reconstruct_batch(numbers[numbers >= 0])
        if np.any(numbers < 0):
            vectors[numbers < 0] = encode(rows[numbers < 0].tolist())
        return vectors


NOTHING = Known(None, np.empty(0, dtype=np.int64))
