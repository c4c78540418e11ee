"""Scores as probabilities, and what is taken off them. One row a text, one column a label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def log_softmax(scores: Scores) -> Scores:
    """Scores as logarithms of probabilities; a constant added to a row changes nothing.

    >>> np.exp(log_softmax(np.array([1.0, 1.0]))).tolist()
    [0.5, 0.5]
    """
    shifted = scores - scores.max(axis=-1, keepdims=True)
    normalised: Scores = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normalised


def log_prior(scores: Scores) -> Scores:
    """The logarithm of each label's mean probability over some texts.

    >>> np.exp(log_prior(np.log([[0.9, 0.1], [0.5, 0.5]]))).round(3).tolist()
    [0.7, 0.3]
    """
    normalised = log_softmax(scores)
    highest = normalised.max(axis=0)
    # The mean in logarithms: a label no text gets must not become minus infinity.
    prior: Scores = highest + np.log(np.exp(normalised - highest).mean(axis=0))
    return prior


def joined(terms: Scores) -> Scores:
    """Several opinions on one text, a row each: the mean of their log-probabilities; one alone stays as it is."""
    mean: Scores = terms[0] if len(terms) == 1 else log_softmax(terms).mean(axis=0)
    return mean
