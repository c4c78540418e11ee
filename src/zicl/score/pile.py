"""What the pile of unlabelled texts knows: texts that are alike have the same label.

``fit_pile`` fits one Gaussian per label to the texts' vectors, with a covariance that all labels share, by expectation
maximisation. It starts from the experts' answers and is held to them in every round, so that labels cannot swap. A
shared covariance makes the result linear in the vector: what is kept is one row of weights per label.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl.score.calibration import Scores, log_softmax

# Chosen on CR, Tweet, SST2, SST5 and AGNews, on natural and skewed shares: benchmarks/beyond.py choose.
DIMENSIONS = 64
# How much the experts' log-probabilities count beside the pile's log-likelihoods, in the fit and afterwards.
ANCHOR = 1.5
# Labels' shares are smoothed with this share of all rows per label, so that none can vanish.
_SMOOTHING = 0.05
_ROUNDS = 30
# Fewer different texts say too little about what is alike.
MIN_TEXTS = 20
# Gaussians are surer of themselves than they should be. Multiplying joined scores keeps labels, not probabilities.
SHARPNESS = 0.3
# Where two halves of the pile lead to the same labels for less than the first share of the texts, it says nothing;
# from the second share on it counts in full.
_STABLE = (0.7, 0.85)

Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear model: one row of weights and one offset per label, in the order of the labels."""

    weights: NDArray[np.float64]
    offsets: NDArray[np.float64]

    def scores(self, vectors: NDArray[np.float32]) -> Scores:
        """Return one row per vector, one column per label."""
        scores: Scores = vectors.astype(np.float64) @ self.weights.T + self.offsets
        return scores

    @cached_property
    def identity(self) -> str:
        """Return a hash of all numbers."""
        parts = (np.array(self.weights.shape, dtype="<i8"), self.weights.astype("<f8"), self.offsets.astype("<f8"))
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


@dataclass(frozen=True, eq=False)
class PileModel:
    """What was learned from a pile: log-likelihoods of the labels, their shares, and how far to trust them.

    ``stability`` is the share of texts on which models of two halves of the pile agree; ``weight`` follows from it.
    ``shares_known`` says that the shares were given: they count whatever the weight. ``source`` is a hash of what was
    learned from.
    """

    linear: Linear
    shares: tuple[float, ...]
    stability: float
    texts: int
    shares_known: bool = False
    source: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PileModel) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.linear.identity)

    @property
    def weight(self) -> float:
        """How much the pile counts, from 0 to 1."""
        low, high = _STABLE
        return float(np.clip((self.stability - low) / (high - low), 0.0, 1.0))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: all but the weights, which are named by their hash."""
        return {
            "weights": self.linear.identity,
            "shares": list(self.shares),
            "stability": self.stability,
            "texts": self.texts,
            "shares_known": self.shares_known,
            "source": self.source,
        }

    def scores(self, vectors: Vectors) -> Scores:
        """Return what the pile adds to the scores of texts: nothing where it does not count, but for known shares."""
        added: Scores = self.weight * self.linear.scores(vectors)
        if self.shares_known:
            # The rest of what the model's own offsets hold of them.
            added += (1 - self.weight) * np.log(self.shares)
        return SHARPNESS * added

    def join(self, experts: Scores, vectors: Vectors) -> Scores:
        """Join the experts' scores of texts with what the pile says about their vectors."""
        return SHARPNESS * ANCHOR * experts + self.scores(vectors)


def fit_pile(vectors: Vectors, experts: Scores, *, gold: Ints | None = None, shares: Scores | None = None) -> PileModel:
    """Fit the model of a pile.

    Parameters
    ----------
    vectors
        One vector per text; at least ``MIN_TEXTS``.
    experts
        The experts' joint log-scores, one row per text and one column per label.
    gold
        The number of each text's label where it is known, else -1: known labels are held fixed.
    shares
        The labels' shares, where they are known; learned otherwise.

    """
    anchor = log_softmax(experts)
    known = np.full(len(vectors), -1) if gold is None else gold
    linear, learned = _fit_mixture(vectors, anchor, known, shares)
    # Every other row: a shuffle would make the result depend on a seed.
    halves = [_fit_mixture(vectors[start::2], anchor[start::2], known[start::2], shares)[0] for start in (0, 1)]
    first, second = ((ANCHOR * anchor + half.scores(vectors)).argmax(axis=1) for half in halves)
    stability = float((first == second).mean())
    return PileModel(linear, tuple(learned.tolist()), stability, len(vectors), shares_known=shares is not None)


def _fit_mixture(vectors: Vectors, anchor: Scores, gold: Ints, shares: Scores | None) -> tuple[Linear, Scores]:
    """Return the linear scores of a mixture, and the labels' shares."""
    count, labels = anchor.shape
    center = vectors.mean(axis=0, dtype=np.float64)
    centered = vectors.astype(np.float64) - center
    _, axes = np.linalg.eigh(centered.T @ centered)
    basis = axes[:, ::-1][:, : min(DIMENSIONS, count - 1)]
    points = centered @ basis
    known = gold >= 0
    # Many gold rows outvote the pile, few do not move it.
    row_weights = np.where(known, np.clip(known.sum() / 32, 1.0, 5.0), 1.0)[:, None]
    fixed = np.eye(labels)[gold[known]]
    posterior = np.exp(anchor)
    for _ in range(_ROUNDS):
        posterior[known] = fixed
        weighted = posterior * row_weights
        totals = weighted.sum(axis=0) + 1e-9
        means = (weighted.T @ points) / totals[:, None]
        # The weighted squares around the means, without an array of texts × labels × dimensions.
        squares = row_weights[:, 0] @ points**2 - (totals[:, None] * means**2).sum(axis=0)
        spread = np.maximum(squares, 0.0) / totals.sum() + 1e-6
        if shares is None:
            share: Scores = (posterior.sum(axis=0) / count + _SMOOTHING) / (1 + labels * _SMOOTHING)
        else:
            share = shares
        scaled = means / spread
        offsets = np.log(share) - 0.5 * (scaled * means).sum(axis=1)
        posterior = np.exp(log_softmax(points @ scaled.T + offsets + ANCHOR * anchor))
    weights = scaled @ basis.T
    return Linear(weights, offsets - weights @ center), share
