"""What the pile of unlabelled texts knows: texts that are alike have the same label.

``fit_pile`` fits one Gaussian per label to the texts' vectors, with a covariance that all labels share, by expectation
maximisation. It starts from the experts' answers and is held to them in every round, so that labels cannot swap. A
shared covariance makes the result linear in the vector: what is kept is one row of weights per label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class NoneModel:
    """From which closeness to a label on a text is more likely to fit one than not; log-odds grow by 1 per ``scale``.

    ``component`` says that texts which fit no label are a component of the mixture, its last.
    """

    threshold: float
    scale: float
    component: bool

    def logits(self, closeness: Scores) -> Scores:
        """Return the log-odds that texts fit no label."""
        return (self.threshold - closeness) / self.scale


@dataclass(frozen=True)
class MultiModel:
    """For each label, slope and offset of the log-odds that a text has it."""

    slopes: tuple[float, ...]
    offsets: tuple[float, ...]

    def logits(self, evidence: Scores) -> Scores:
        """Return the log-odds of each label."""
        logits: Scores = against_background(evidence) * np.array(self.slopes) + np.array(self.offsets)
        return logits


def add_none(scores: Scores, logits: Scores) -> Scores:
    """Return log-probabilities with a last column for none of the labels; the labels share the rest.

    >>> np.exp(add_none(np.zeros((1, 2)), np.zeros(1))).tolist()
    [[0.25, 0.25, 0.5]]
    """
    labels = log_softmax(scores) - np.logaddexp(0.0, logits)[:, None]
    return np.concatenate([labels, -np.logaddexp(0.0, -logits)[:, None]], axis=1)


def against_background(evidence: Scores) -> Scores:
    """Subtract the mean over the labels and the middle of the pile, whose evidence is 0.

    >>> against_background(np.array([[3.0, 3.0]])).tolist()
    [[1.0, 1.0]]
    """
    compared: Scores = evidence - evidence.sum(axis=1, keepdims=True) / (evidence.shape[1] + 1)
    return compared


@dataclass(frozen=True, eq=False)
class PileModel:
    """What was learned from a pile: log-likelihoods of the labels, their shares, and how far to trust them.

    ``stability`` is the share of texts on which models of two halves of the pile agree; ``weight`` follows from it.
    ``shares_known`` says that the shares were given: they count whatever the weight. ``source`` is a hash of what was
    learned from. ``none`` and ``multi`` hold what was learned about texts that fit no label, or several.
    """

    linear: Linear
    shares: tuple[float, ...]
    stability: float
    texts: int
    shares_known: bool = False
    source: str = ""
    none: NoneModel | None = None
    multi: MultiModel | None = None

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
            "none": None if self.none is None else asdict(self.none),
            "multi": None if self.multi is None else {name: list(row) for name, row in asdict(self.multi).items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], linear: Linear) -> PileModel:
        """Return what ``to_dict`` wrote, with the weights, which are stored beside it."""
        rest = {name: value for name, value in values.items() if name != "weights"}
        if (none := rest["none"]) is not None:
            rest["none"] = NoneModel(**none)
        if (multi := rest["multi"]) is not None:
            rest["multi"] = MultiModel(**{name: tuple(row) for name, row in multi.items()})
        return cls(linear, **{**rest, "shares": tuple(rest["shares"])})

    def scores(self, vectors: Vectors) -> Scores:
        """Return what the pile adds to the scores of texts: nothing where it does not count, but for known shares."""
        added: Scores = self.weight * self.linear.scores(vectors)
        if self.shares_known:
            # The rest of what the model's own offsets hold of them.
            added += (1 - self.weight) * np.log(self.shares)
        return SHARPNESS * added

    def evidence(self, experts: Scores, vectors: Vectors) -> Scores:
        """Return the log-likelihoods of the labels by the experts and the pile, before they are made less sure."""
        evidence: Scores = ANCHOR * log_softmax(experts) + self.weight * self.linear.scores(vectors)
        return evidence

    def join(self, experts: Scores, vectors: Vectors, closeness: Scores | None = None) -> Scores:
        """Join the experts' scores of texts with what the pile says about their vectors.

        Where a text may fit no label, ``closeness`` is that to the label nearest to it, and none has the last column.
        Where it may have several, the result is the log-odds of each.
        """
        if self.multi is not None:
            return self.multi.logits(self.evidence(experts, vectors))
        if self.none is None or closeness is None:
            return SHARPNESS * ANCHOR * experts + self.scores(vectors)
        logits = self.none.logits(closeness)
        if self.none.component:
            return SHARPNESS * ANCHOR * add_none(experts, logits) + self.scores(vectors)
        return add_none(SHARPNESS * ANCHOR * experts + self.scores(vectors), logits)


def fit_pile(
    vectors: Vectors,
    experts: Scores,
    *,
    gold: Ints | Scores | None = None,
    shares: Scores | None = None,
    dimensions: int | None = None,
) -> PileModel:
    """Fit the model of a pile.

    Parameters
    ----------
    vectors
        One vector per text; at least ``MIN_TEXTS``.
    experts
        The experts' joint log-scores, one row per text and one column per label.
    gold
        The number of each text's label where it is known, else -1: known labels are held fixed. Or a row per text with
        the share of each label in it, all 0 where nothing is known.
    shares
        The labels' shares, where they are known; learned otherwise.
    dimensions
        Learn from this many principal components.

    """
    anchor = log_softmax(experts)
    known = np.full(len(vectors), -1) if gold is None else gold
    linear, learned = fit_mixture(vectors, anchor, known, shares, dimensions)
    # Every other row: a shuffle would make the result depend on a seed.
    halves = [
        fit_mixture(vectors[start::2], anchor[start::2], known[start::2], shares, dimensions)[0] for start in (0, 1)
    ]
    first, second = ((ANCHOR * anchor + half.scores(vectors)).argmax(axis=1) for half in halves)
    stability = float((first == second).mean())
    return PileModel(linear, tuple(learned.tolist()), stability, len(vectors), shares_known=shares is not None)


def fit_mixture(
    vectors: Vectors, anchor: Scores, gold: Ints | Scores, shares: Scores | None, dimensions: int | None = None
) -> tuple[Linear, Scores]:
    """Return the linear scores of a mixture, and the labels' shares; arguments as of ``fit_pile``."""
    count, labels = anchor.shape
    center = vectors.mean(axis=0, dtype=np.float64)
    centered = vectors.astype(np.float64) - center
    _, axes = np.linalg.eigh(centered.T @ centered)
    basis = axes[:, ::-1][:, : min(dimensions or DIMENSIONS, count - 1)]
    points = centered @ basis
    held = gold if gold.ndim == 2 else np.eye(labels + 1)[gold][:, :labels]
    known = held.any(axis=1)
    # Many gold rows outvote the pile, few do not move it.
    row_weights = np.where(known, np.clip(known.sum() / 32, 1.0, 5.0), 1.0)[:, None]
    fixed = held[known]
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
