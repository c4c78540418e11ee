"""Which rows the language model is asked about: some of every kind of text there is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng, stable_hash
from zicl.score.calibration import Scores, log_softmax

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
        for number, share in zip(numbers, allocate_rows(sizes, count), strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def allocate_rows(sizes: Rows, count: int) -> Rows:
    """``count`` draws over groups of these sizes: one each, the rest in proportion, and never more than there are.

    >>> allocate_rows(np.array([90, 9, 1]), 12).tolist()
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


# -- Learning the language model's probabilities from vectors, by logistic regression.


# Values of scikit-learn's C: the larger, the closer to the model's answers and the less smooth.
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
_FOLDS = 5
# A label whose share is 0 everywhere would be pushed away without end.
_FLOOR = 1e-6


@dataclass(frozen=True)
class Trained:
    """The weights, the C they were fitted with, and the cross-validated loss of every C that was tried."""

    linear: Linear
    strength: float
    losses: tuple[tuple[float, float], ...]


def train(vectors: NDArray[np.float32], shares: Scores, seed: int, report: ProgressReport = silent) -> Trained:
    """Fit weights to probabilities, one row a text and one column a label; C is chosen on these rows alone."""
    losses = []
    for number, strength in enumerate(STRENGTHS):
        report("training", number, len(STRENGTHS) + 1)
        found = [
            loss(shares[held], fit_linear(vectors[kept], shares[kept], strength).scores(vectors[held]))
            for kept, held in _folds(len(vectors), seed)
        ]
        losses.append((strength, float(np.concatenate(found).mean())))
    # Of equal losses the first, and with it the smoothest.
    best = min(losses, key=lambda pair: pair[1])[0]
    report("training", len(STRENGTHS), len(STRENGTHS) + 1)
    linear = fit_linear(vectors, shares, best)
    report("training", len(STRENGTHS) + 1, len(STRENGTHS) + 1)
    return Trained(linear, best, tuple(losses))


def fit_linear(vectors: NDArray[np.float32], shares: Scores, strength: float) -> Linear:
    """Each row stands there once a label, and weighs as much as the label's probability."""
    from sklearn.linear_model import LogisticRegression

    count, labels = shares.shape
    rows = np.repeat(vectors.astype(np.float64), labels, axis=0)
    targets = np.tile(np.arange(labels), count)
    model = LogisticRegression(C=strength, max_iter=5000)
    model.fit(rows, targets, sample_weight=np.maximum(shares, _FLOOR).ravel())
    weights, offsets = model.coef_, model.intercept_
    if labels == 2:
        # Of two labels scikit-learn keeps the difference.
        weights, offsets = np.concatenate([-weights, weights]) / 2, np.concatenate([-offsets, offsets]) / 2
    return Linear(np.ascontiguousarray(weights, dtype=np.float64), np.asarray(offsets, dtype=np.float64))


def loss(shares: Scores, scores: Scores) -> Scores:
    """The cross-entropy of each row: its log-loss against probabilities instead of one right label.

    >>> loss(np.array([[1.0, 0.0]]), np.log([[0.5, 0.5]])).round(3).tolist()
    [0.693]
    """
    found: Scores = -(shares * log_softmax(scores)).sum(axis=1)
    return found


def _folds(count: int, seed: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    from sklearn.model_selection import KFold

    state = stable_hash(seed, "folds to choose C on") % 2**32
    yield from KFold(min(_FOLDS, count), shuffle=True, random_state=state).split(np.empty(count))


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
