"""Which sentences are new: eight bytes a distinct sentence, and nothing else, are kept in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zicl._files import text_hash


class Seen:
    """The distinct sentences so far, as a sorted array of hashes.

    >>> seen = Seen()
    >>> seen.first(["a", "b", "a"]).tolist(), seen.first(["b", "c"]).tolist()
    ([True, True, False], [False, True])
    """

    def __init__(self) -> None:
        self._hashes: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._hashes)

    def first(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """For each text, whether it stands here for the first time; the texts are then known."""
        hashes = np.fromiter((text_hash(text) for text in texts), dtype=np.uint64, count=len(texts))
        distinct, where = np.unique(hashes, return_index=True)
        places = np.searchsorted(self._hashes, distinct)
        inside = places < len(self._hashes)
        known = np.zeros(len(distinct), dtype=bool)
        known[inside] = self._hashes[places[inside]] == distinct[inside]
        result = np.zeros(len(texts), dtype=bool)
        result[where[~known]] = True
        self._hashes = np.insert(self._hashes, places[~known], distinct[~known])
        return result
