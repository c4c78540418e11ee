"""Choose diverse texts to distil from, and fit a linear model to the teacher's probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng, stable_hash
from zicl.score.calibration import Scores, log_softmax
from zicl.score.pile import Linear

Rows = NDArray[np.int64]

# About this many rows per cluster are sampled; more clusters than the maximum separate nothing more.
_ROWS_PER_CLUSTER, _MAX_CLUSTERS = 8, 256
# Clusters are fitted on at most this many rows; all rows are assigned in chunks.
_CLUSTER_FIT_ROWS, _CHUNK = 20_000, 8_192
# Values of scikit-learn's C: the larger, the closer to the teacher and the less smooth.
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
_FOLDS = 5
# A label with probability 0 everywhere would get weights without bound.
_MIN_PROBABILITY = 1e-6


def diverse_sample(vectors: NDArray[np.float32], count: int, seed: int) -> Rows:
    """Draw ``count`` rows from k-means clusters in proportion to their size, at least one from each.

    Rows are sorted; all are returned if there are no more than ``count``.
    """
    if count >= len(vectors):
        return np.arange(len(vectors))
    clusters = _assign_clusters(vectors, max(1, min(_MAX_CLUSTERS, count // _ROWS_PER_CLUSTER)), seed)
    numbers, sizes = np.unique(clusters, return_counts=True)
    drawn = [
        rng(seed, "rows to distil from", int(number)).choice(np.flatnonzero(clusters == number), share, replace=False)
        for number, share in zip(numbers, allocate_rows(sizes, count), strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def allocate_rows(sizes: Rows, count: int) -> Rows:
    """Divide ``count`` draws among groups: one each, the rest in proportion to size, never more than the size.

    >>> allocate_rows(np.array([90, 9, 1]), 12).tolist()
    [9, 2, 1]
    """
    spare, left = sizes - 1, count - len(sizes)
    total = max(1, int(spare.sum()))
    # Integer arithmetic; the rest goes to the largest remainders.
    extra, remainder = spare * left // total, spare * left % total
    extra[np.argsort(-remainder, kind="stable")[: left - int(extra.sum())]] += 1
    drawn: Rows = extra + 1
    return drawn


def _assign_clusters(vectors: NDArray[np.float32], count: int, seed: int) -> Rows:
    """Return the cluster of each row."""
    from sklearn.cluster import MiniBatchKMeans

    fit_rows: Rows = np.arange(len(vectors))
    if len(vectors) > _CLUSTER_FIT_ROWS:
        sample = rng(seed, "rows to find clusters on").choice(len(vectors), _CLUSTER_FIT_ROWS, replace=False)
        fit_rows = np.sort(sample)
    state = stable_hash(seed, "clusters to distil from") % 2**32
    # Double precision: rounding on another machine must not move a text to another cluster.
    kmeans = MiniBatchKMeans(count, n_init=3, random_state=state).fit(vectors[fit_rows].astype(np.float64))
    chunks = [vectors[start : start + _CHUNK] for start in range(0, len(vectors), _CHUNK)]
    return np.concatenate([kmeans.predict(chunk.astype(np.float64)) for chunk in chunks]).astype(np.int64)


@dataclass(frozen=True)
class Trained:
    """A fitted model, its C (``strength``), and the cross-validated loss of every C that was tried."""

    linear: Linear
    strength: float
    losses: tuple[tuple[float, float], ...]


def train(vectors: NDArray[np.float32], probabilities: Scores, seed: int, report: ProgressReport = silent) -> Trained:
    """Fit a linear model to probabilities, one row per text, one column per label; C is chosen by cross-validation."""
    losses = []
    for number, strength in enumerate(STRENGTHS):
        report("training", number, len(STRENGTHS) + 1)
        fold_losses = [
            cross_entropy(
                probabilities[held], fit_linear(vectors[kept], probabilities[kept], strength).scores(vectors[held])
            )
            for kept, held in _folds(len(vectors), seed)
        ]
        losses.append((strength, float(np.concatenate(fold_losses).mean())))
    # Ties go to the first, which is the smoothest.
    best = min(losses, key=lambda pair: pair[1])[0]
    report("training", len(STRENGTHS), len(STRENGTHS) + 1)
    linear = fit_linear(vectors, probabilities, best)
    report("training", len(STRENGTHS) + 1, len(STRENGTHS) + 1)
    return Trained(linear, best, tuple(losses))


def fit_linear(vectors: NDArray[np.float32], probabilities: Scores, strength: float) -> Linear:
    """Fit a logistic regression to soft labels: each text occurs once per label, weighted by its probability."""
    from sklearn.linear_model import LogisticRegression

    count, labels = probabilities.shape
    rows = np.repeat(vectors.astype(np.float64), labels, axis=0)
    targets = np.tile(np.arange(labels), count)
    model = LogisticRegression(C=strength, max_iter=5000)
    model.fit(rows, targets, sample_weight=np.maximum(probabilities, _MIN_PROBABILITY).ravel())
    weights, offsets = model.coef_, model.intercept_
    if labels == 2:
        # For binary problems scikit-learn keeps only the difference of the two labels.
        weights, offsets = np.concatenate([-weights, weights]) / 2, np.concatenate([-offsets, offsets]) / 2
    return Linear(np.ascontiguousarray(weights, dtype=np.float64), np.asarray(offsets, dtype=np.float64))


def cross_entropy(probabilities: Scores, scores: Scores) -> Scores:
    """Return the cross-entropy of each row: the log-loss against probabilities instead of one label.

    >>> cross_entropy(np.array([[1.0, 0.0]]), np.log([[0.5, 0.5]])).round(3).tolist()
    [0.693]
    """
    losses: Scores = -(probabilities * log_softmax(scores)).sum(axis=1)
    return losses


def _folds(count: int, seed: int) -> Iterator[tuple[Rows, Rows]]:
    from sklearn.model_selection import KFold

    state = stable_hash(seed, "folds to choose C on") % 2**32
    yield from KFold(min(_FOLDS, count), shuffle=True, random_state=state).split(np.empty(count))
