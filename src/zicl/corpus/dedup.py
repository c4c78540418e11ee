"""Which sentences are new: eight bytes a distinct sentence, and nothing else, are kept in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Seen:
    """The distinct sentences so far, as a sorted array of hashes.

    >>> seen = Seen()
    >>> seen.first(np.array([5, 7, 5], dtype=np.uint64)).tolist()
    [True, True, False]
    """

    def __init__(self) -> None:
        self._hashes: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._hashes)

    def first(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """For each hash, whether it stands here for the first time; all are then known."""
        distinct, where = np.unique(hashes, return_index=True)
        places = np.searchsorted(self._hashes, distinct)
        inside = places < len(self._hashes)
        known = np.zeros(len(distinct), dtype=bool)
        known[inside] = self._hashes[places[inside]] == distinct[inside]
        result = np.zeros(len(hashes), dtype=bool)
        result[where[~known]] = True
        self._hashes = np.insert(self._hashes, places[~known], distinct[~known])
        return result
