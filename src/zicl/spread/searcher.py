"""A search of a share of an index' vectors."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl.retrieve import vectors
from zicl.retrieve.effort import Effort
from zicl.retrieve.search import Found, Selection, search

# A query, how many are wanted, the marks of those that may be found (None: all), and how far to look.
Asked = tuple[NDArray[np.float32], int, NDArray[np.uint8] | None, Effort]


class Searcher:
    """Searches the vectors between two numbers; of a mapped file only their pages are read."""

    def __init__(self, path: str, kind: str, first: int, last: int) -> None:
        faiss.omp_set_num_threads(1)
        self._index = vectors.read(kind, Path(path))
        self._first, self._last = first, last

    def search(self, asked: Asked) -> Found:
        """The nearest of its share."""
        query, count, bits, effort = asked
        only = Selection.between(self._first, self._last)
        if bits is not None:
            chosen = np.unpackbits(bits, count=self._index.ntotal, bitorder="little").astype(bool)
            chosen[: self._first] = chosen[self._last :] = False
            only = Selection.of(chosen)
        if only.count == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        return search(self._index, query, count, only, effort)
