"""Learning the language model's probabilities from vectors, by logistic regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zicl._util.progress import Report, silent
from zicl._util.random import stable_hash
from zicl.apps.distill.linear import Linear
from zicl.score.calibration import Scores, log_softmax

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


def train(vectors: NDArray[np.float32], shares: Scores, seed: int, report: Report = silent) -> Trained:
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
