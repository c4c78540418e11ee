"""Decide how many labels a text gets: none of them, where nothing fits, or several.

Both are learned from the pile, without labels. ``fit_none`` adds a component for texts that are far from every label,
if the pile has such texts; ``fit_multi`` learns for each label from which score on a text has it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from zicl.exceptions import PileWarning
from zicl.score.calibration import Scores
from zicl.score.pile import (
    SHARPNESS,
    Ints,
    MultiModel,
    NoneModel,
    PileModel,
    Vectors,
    add_none,
    against_background,
    fit_pile,
)

Bools = NDArray[np.bool_]

# All of this was chosen on training rows; docs/results/decision.md says on which, and what was not blind.
# Fewer dimensions than for labels: texts that fit nothing are far away in the largest ones.
_NONE_DIMENSIONS = 32
# Shares of the pile that may fit no label, tried from the largest: the first that makes a component of its own counts.
_OUTLYING = (0.2, 0.1, 0.05, 0.02)
# A component of its own leaves few texts in doubt: at most this many per text that it holds, at this many log-odds.
_MOST_DOUBTFUL, _DOUBT = 0.75, 3.0
# Fewer texts than these are no component: in a small pile any few texts may look apart.
_MIN_HELD = 10
# Where there is no such component, texts this many (robust) standard deviations below the median fit no label.
_DEVIATIONS = 3.0
# Gold rows of each kind from which on they decide where none begins.
_MIN_GOLD = 3
# With several labels allowed, a text is thought to have about this many, until its pile says otherwise.
_LABELS_PER_TEXT, _MOST_OF_TEXTS = 1.5, 0.4
# How far the pile's own thresholds are moved to that prior, and its slopes damped: two Gaussians are too sure.
_TO_PRIOR, _DAMPING = 0.5, 0.5
# The prior counts as much as this many gold rows of a label.
_PRIOR_ROWS = 8.0


# -- none of these ------------------------------------------------------------------------------------------


def fit_none(
    vectors: Vectors, experts: Scores, closeness: Scores, *, gold: Ints | None = None, shares: Scores | None = None
) -> PileModel:
    """Fit the model of a pile in which some texts may fit no label.

    Parameters
    ----------
    vectors, experts
        As for ``fit_pile``.
    closeness
        How close each text is to the label nearest to it.
    gold
        The number of each text's label where it is known, else -1; the number of labels stands for none of them.
    shares
        The labels' shares, that of none last, where they are known.

    """
    labels = experts.shape[1]
    known = np.full(len(vectors), -1) if gold is None else gold
    taught = _taught_none(closeness, known, labels)
    if taught is not None:
        certain = taught
    elif shares is not None:
        certain = _assumed_none(closeness, float(shares[-1]))
    else:
        certain = None
    for candidate in [certain] if certain else [_assumed_none(closeness, share) for share in _OUTLYING]:
        extended = add_none(experts, candidate.logits(closeness))
        model = fit_pile(vectors, extended, gold=known, shares=shares, dimensions=_NONE_DIMENSIONS)
        model = replace(model, none=candidate)
        if certain or _is_component(model.join(experts, vectors, closeness) / SHARPNESS):
            return model
    if (ignored := int((known == labels).sum())) > 0:
        warnings.warn(
            f"{ignored} gold rows that fit no label are too few to learn from, {_MIN_GOLD} are needed, and as many "
            "with a label: they were left out",
            PileWarning,
            stacklevel=4,
        )
    model = fit_pile(vectors, experts, gold=np.where(known == labels, -1, known))
    return replace(model, none=_outliers(closeness))


def _is_component(evidence: Scores) -> bool:
    """Return whether the texts that fit no label, the last column, are apart from the others: few are in doubt."""
    odds = evidence[:, -1] - np.logaddexp.reduce(evidence[:, :-1], axis=1)
    held = int((odds > 0).sum())
    return held >= _MIN_HELD and int((np.abs(odds) < _DOUBT).sum()) < _MOST_DOUBTFUL * held


def _assumed_none(closeness: Scores, share: float) -> NoneModel:
    """Return where none begins if about this share of the texts fits no label."""
    return NoneModel(float(np.quantile(closeness, share)), float(closeness.std() / 2 + 1e-9), component=True)


def _outliers(closeness: Scores) -> NoneModel:
    """Return where none begins if texts that fit no label are single outliers."""
    median = float(np.median(closeness))
    spread = 1.4826 * float(np.median(np.abs(closeness - median))) + 1e-9
    return NoneModel(median - _DEVIATIONS * spread, spread / 3, component=False)


def _taught_none(closeness: Scores, gold: Ints, labels: int) -> NoneModel | None:
    """Return where none begins according to gold rows, if there are enough of both kinds."""
    from sklearn.linear_model import LogisticRegression

    fits, fits_not = (gold >= 0) & (gold < labels), gold == labels
    if min(fits.sum(), fits_not.sum()) < _MIN_GOLD:
        return None
    rows, unit = fits | fits_not, closeness.std() + 1e-9
    model = LogisticRegression(class_weight="balanced").fit(closeness[rows, None] / unit, fits_not[rows])
    slope = max(-float(model.coef_[0, 0]), 0.1) / unit
    return NoneModel(float(model.intercept_[0]) / slope, 1 / slope, component=True)


@dataclass(frozen=True)
class NonePoint:
    """What a threshold does: the share of texts that get none, and how many with a gold label are right, if any has."""

    threshold: float
    share: float
    accuracy: float | None


def none_curve(
    probabilities: Sequence[Mapping[str, float]],
    none: str,
    thresholds: Sequence[float],
    gold: Sequence[str | None] = (),
) -> list[NonePoint]:
    """Return what each threshold does.

    >>> none_curve([{"a": 0.2, "b": 0.1, "other": 0.7}], "other", [0.5, 0.9], ["a"])
    [NonePoint(threshold=0.5, share=1.0, accuracy=0.0), NonePoint(threshold=0.9, share=0.0, accuracy=1.0)]
    """
    likeliest = [max((name for name in row if name != none), key=row.__getitem__) for row in probabilities]
    points = []
    for limit in thresholds:
        given = [none if row[none] >= limit else best for row, best in zip(probabilities, likeliest, strict=True)]
        right = [label == true for label, true in zip(given, gold, strict=False) if true]
        accuracy = sum(right) / len(right) if right else None
        points.append(NonePoint(limit, given.count(none) / len(given), accuracy))
    return points


# -- several labels -----------------------------------------------------------------------------------------


def fit_multi(vectors: Vectors, experts: Scores, gold: Bools, is_known: Bools) -> PileModel:
    """Fit the model of a pile in which texts have any number of labels.

    ``gold`` has a row per text and a column per label; it counts for texts of which something ``is_known``, also that
    they have no label. Labels compete for texts as ever; then each has its own threshold, learned from how its scores
    are distributed over the pile.
    """
    held = gold / np.maximum(gold.sum(axis=1, keepdims=True), 1)
    model = fit_pile(vectors, experts, gold=held)
    scores = against_background(model.evidence(experts, vectors))
    fitted = [_label_logit(column, scores.shape[1]) for column in scores.T]
    if is_known.any():
        fitted = [
            _taught_logit(column, line, has, is_known)
            for column, line, has in zip(scores.T, fitted, gold.T, strict=True)
        ]
    slopes, offsets = zip(*fitted, strict=True)
    return replace(model, multi=MultiModel(tuple(slopes), tuple(offsets)))


def _sigmoid(logits: Scores) -> Scores:
    probabilities: Scores = np.exp(-np.logaddexp(0.0, -logits))
    return probabilities


def _label_logit(scores: Scores, labels: int) -> tuple[float, float]:
    """Return slope and offset of the log-odds that a text has a label, given all texts' scores of it.

    Two Gaussians of one variance, for texts with and without the label, are fitted by expectation maximisation.
    """
    mean, spread = float(scores.mean()), float(scores.std()) + 1e-9
    points = (scores - mean) / spread
    share = min(_MOST_OF_TEXTS, _LABELS_PER_TEXT / labels)
    prior = NormalDist().inv_cdf(1 - share)
    slope, threshold = 4.0, float(np.quantile(points, 1 - share))
    for _ in range(100):
        has = _sigmoid(slope * (points - threshold))
        portion = float(np.clip(has.mean(), 0.02, 0.98))
        high, low = (float(weights @ points / weights.sum()) for weights in (has, 1 - has))
        variance = float(has @ (points - high) ** 2 + (1 - has) @ (points - low) ** 2) / len(points) + 1e-3
        slope = max((high - low) / variance, 0.1)
        threshold = (high + low) / 2 - float(np.log(portion / (1 - portion))) / slope
    threshold = (1 - _TO_PRIOR) * threshold + _TO_PRIOR * prior
    slope *= _DAMPING / spread
    return slope, -slope * (mean + threshold * spread)


def _taught_logit(scores: Scores, line: tuple[float, float], has: Bools, rows: Bools) -> tuple[float, float]:
    """Return the same as gold rows have it; what the pile said counts as a few further rows."""
    from sklearn.linear_model import LogisticRegression

    unit = float(scores.std()) + 1e-9
    said = _sigmoid(line[0] * scores + line[1])
    points = np.concatenate([scores[rows], scores, scores])[:, None] / unit
    answers = np.concatenate([has[rows], np.ones(len(scores)), np.zeros(len(scores))])
    prior = _PRIOR_ROWS / len(scores)
    weights = np.concatenate([np.ones(int(rows.sum())), prior * said, prior * (1 - said)])
    model = LogisticRegression(C=100.0).fit(points, answers, sample_weight=weights)
    # More evidence never makes a label less likely, whatever a few rows say.
    return max(float(model.coef_[0, 0]), 0.05) / unit, float(model.intercept_[0])
