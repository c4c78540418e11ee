"""Exact search of any index that gives its vectors back, in blocks: what approximate searches are measured against."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 16


def nearest(
    index: Any, queries: NDArray[np.float32], count: int, numbers: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Numbers and similarities of the nearest of each query, among ``numbers`` or all; equal ones by number."""
    among = np.arange(index.ntotal) if numbers is None else numbers
    best = np.empty((len(queries), 0), dtype=np.int64)
    similarities = np.empty((len(queries), 0), dtype=np.float32)
    for start in range(0, len(among), _BLOCK):
        block = among[start : start + _BLOCK]
        kept = min(count, len(block))
        near, places = faiss.knn(queries, index.reconstruct_batch(block), kept, metric=faiss.METRIC_INNER_PRODUCT)
        best, similarities = np.hstack([best, block[places]]), np.hstack([similarities, near])
        order = np.lexsort((best, -similarities), axis=1)[:, :count]
        best, similarities = np.take_along_axis(best, order, 1), np.take_along_axis(similarities, order, 1)
    return best, similarities
