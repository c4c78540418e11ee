"""What probabilities claim, and whether it holds: measures of one forecaster. One row a text, one column a label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zicl.lab.report.cells import Ints, ReportCell
from zicl.score.calibration import Scores, log_softmax

BINS = 15
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ProbabilityClaims:
    """The mean over seeds: negative log-likelihood in nats, Brier score from 0 to 2, calibration error in per cent."""

    nll: float
    brier: float
    ece: float


@dataclass(frozen=True, eq=False)
class Bins:
    """Texts of similar confidence together: how many, how confident on average, and the share that is right."""

    counts: Ints
    confidence: Floats
    accuracy: Floats


def has_probabilities(cell: ReportCell) -> bool:
    """Whether the scores are meant as probabilities: cosines are not, and say nothing as they are."""
    return bool(cell.present) and not cell.kind.sort.startswith("cosine")


def probability_claims(cell: ReportCell) -> ProbabilityClaims | None:
    """The measures of a cell; None where nothing is claimed."""
    if not has_probabilities(cell):
        return None
    measured = [
        (nll(run.scores, run.gold), brier(run.scores, run.gold), ece(confidence(run.scores), run.gold == run.predicted))
        for run in cell.runs
    ]
    first, second, third = (float(value) for value in np.mean(measured, axis=0))
    return ProbabilityClaims(first, second, 100 * third)


def probabilities(scores: Scores) -> Floats:
    """Softmax, row by row."""
    return np.exp(log_softmax(scores))


def confidence(scores: Scores) -> Floats:
    """The highest probability of each row; what differs by no more than a rounding error is the same."""
    highest: Floats = probabilities(scores).max(axis=-1).round(12)
    return highest


def nll(scores: Scores, gold: Ints) -> float:
    """The mean negative log-probability of the gold label; infinite where one was ruled out.

    >>> round(nll(np.log([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0])), 4)
    1.0397
    """
    return float(-log_softmax(scores)[np.arange(len(gold)), gold].mean())


def brier(scores: Scores, gold: Ints) -> float:
    """The squared distance to the gold label's certainty, summed over labels, averaged over texts.

    >>> round(brier(np.log([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0])), 4)
    0.8125
    """
    certain = np.eye(scores.shape[1])[gold]
    return float(((probabilities(scores) - certain) ** 2).sum(axis=1).mean())


def ece(confident: Floats, right: NDArray[np.bool_], bins: int = BINS) -> float:
    """The expected calibration error: how far confidence and accuracy of a bin lie apart, averaged over texts.

    >>> round(ece(np.array([0.6, 0.6, 0.9, 0.9]), np.array([True, False, True, True])), 4)
    0.1
    """
    found = equal_mass(confident, right, bins)
    return float(np.average(np.abs(found.confidence - found.accuracy), weights=found.counts))


def equal_mass(confident: Floats, right: NDArray[np.bool_], bins: int = BINS) -> Bins:
    """Bins of equally many texts, as far as texts of one confidence stay together: no order of rows matters then.

    >>> equal_mass(np.array([0.9, 0.5, 0.5, 0.5]), np.array([True, True, False, True]), 2).counts.tolist()
    [3, 1]
    """
    ordered = np.sort(confident)
    below, upto = (np.searchsorted(ordered, confident, side=side) for side in ("left", "right"))
    # Texts of one confidence go where the middle of their places is.
    at = (below + upto) * bins // (2 * len(ordered))
    counts = np.bincount(at)
    held = counts > 0
    means = [np.bincount(at, weights=values)[held] / counts[held] for values in (confident, right.astype(np.float64))]
    return Bins(counts[held], means[0], means[1])


def risk_coverage(confident: Floats, right: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Answering only the most confident share of the texts (coverage): how many of these answers are wrong (risk).

    Texts of one confidence are answered together.

    >>> coverage, risk = risk_coverage(np.array([0.9, 0.8, 0.8, 0.6]), np.array([True, True, False, False]))
    >>> coverage.tolist(), risk.round(3).tolist()
    ([0.25, 0.75, 1.0], [0.0, 0.333, 0.5])
    """
    order = np.argsort(-confident, kind="stable")
    wrong, answered = np.cumsum(~right[order]), np.arange(1, len(order) + 1)
    last = np.flatnonzero(np.append(np.diff(confident[order]) != 0, True))
    return answered[last] / len(order), wrong[last] / answered[last]
