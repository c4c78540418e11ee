"""Which rows the language model is asked about: some of every kind of text there is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng, stable_hash

Rows = NDArray[np.int64]

# A cluster is drawn from about so often; more clusters than this tell nothing more apart.
_EACH, _MOST_CLUSTERS = 8, 256
# Clusters are found on so many rows at most, and the others join the nearest.
_LEARN, _PIECE = 20_000, 8_192


def diverse_sample(vectors: NDArray[np.float32], count: int, seed: int) -> Rows:
    """``count`` rows in their order, drawn from clusters in proportion to their size, and at least one from each.

    All rows, if there are no more than that.
    """
    if count >= len(vectors):
        return np.arange(len(vectors))
    clusters = _clusters(vectors, max(1, min(_MOST_CLUSTERS, count // _EACH)), seed)
    numbers, sizes = np.unique(clusters, return_counts=True)
    drawn = [
        rng(seed, "rows to distil from", int(number)).choice(np.flatnonzero(clusters == number), share, replace=False)
        for number, share in zip(numbers, allot(sizes, count), strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def allot(sizes: Rows, count: int) -> Rows:
    """``count`` draws over groups of these sizes: one each, the rest in proportion, and never more than there are.

    >>> allot(np.array([90, 9, 1]), 12).tolist()
    [9, 2, 1]
    """
    spare, left = sizes - 1, count - len(sizes)
    total = max(1, int(spare.sum()))
    # Whole numbers throughout: what is left over goes to the largest remainders.
    whole, rest = spare * left // total, spare * left % total
    first = np.argsort(-rest, kind="stable")[: left - int(whole.sum())]
    whole[first] += 1
    drawn: Rows = whole + 1
    return drawn


def _clusters(vectors: NDArray[np.float32], count: int, seed: int) -> Rows:
    """The cluster of each row."""
    from sklearn.cluster import MiniBatchKMeans

    learned: Rows = np.arange(len(vectors))
    if len(vectors) > _LEARN:
        learned = np.sort(rng(seed, "rows to find clusters on").choice(len(vectors), _LEARN, replace=False))
    state = stable_hash(seed, "clusters to distil from") % 2**32
    # Double precision: the rounding of another machine must not move a text to another cluster.
    fitted = MiniBatchKMeans(count, n_init=3, random_state=state).fit(vectors[learned].astype(np.float64))
    pieces = [vectors[start : start + _PIECE] for start in range(0, len(vectors), _PIECE)]
    return np.concatenate([fitted.predict(piece.astype(np.float64)) for piece in pieces]).astype(np.int64)
