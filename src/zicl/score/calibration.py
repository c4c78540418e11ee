"""Turn scores into probabilities, and calibrate them: subtract what a label would get for any text.

Scores are arrays with one row per text and one column per label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.config import Calibration
from zicl.exceptions import ConfigError

Scores = NDArray[np.float64]
# The content-free inputs of contextual calibration (Zhao et al., 2021); an empty one is the bare input line.
CONTENT_FREE = ("N/A", "[MASK]", "")


def log_softmax(scores: Scores) -> Scores:
    """Return log-probabilities; adding a constant to a row changes nothing.

    >>> np.exp(log_softmax(np.array([1.0, 1.0]))).tolist()
    [0.5, 0.5]
    """
    shifted = scores - scores.max(axis=-1, keepdims=True)
    normalized: Scores = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normalized


def log_prior(scores: Scores) -> Scores:
    """Return the logarithm of each label's mean probability over some texts.

    >>> np.exp(log_prior(np.log([[0.9, 0.1], [0.5, 0.5]]))).round(3).tolist()
    [0.7, 0.3]
    """
    normalized = log_softmax(scores)
    highest = normalized.max(axis=0)
    # A log-mean-exp: a label that no text gets must not become minus infinity.
    prior: Scores = highest + np.log(np.exp(normalized - highest).mean(axis=0))
    return prior


def join_terms(terms: Scores) -> Scores:
    """Join several terms' scores of one text, one row each: the mean of their log-probabilities.

    A single term is returned as it is.
    """
    mean: Scores = terms[0] if len(terms) == 1 else log_softmax(terms).mean(axis=0)
    return mean


class Probes(Protocol):
    """Content-free inputs, scored under the same demonstrations: what a label gets for them it gets for any text."""

    def inputs(self, sentences: Sequence[str], seed: int, key: str) -> list[str]:
        """Return the inputs for a prompt with these sentences as demonstrations."""
        ...


@dataclass(frozen=True)
class FixedProbes:
    """The same inputs under every prompt."""

    texts: tuple[str, ...]

    def inputs(self, sentences: Sequence[str], seed: int, key: str) -> list[str]:
        """Return the fixed inputs."""
        return list(self.texts)


@dataclass(frozen=True)
class DomainWordProbes:
    """Random words of the demonstrations, as many as their median sentence has (Fei et al., 2023)."""

    draws: int

    def inputs(self, sentences: Sequence[str], seed: int, key: str) -> list[str]:
        """Return ``draws`` random word sequences."""
        split = [sentence.split() for sentence in sentences]
        words = [word for sentence in split for word in sentence]
        length = sorted(len(sentence) for sentence in split)[len(split) // 2]
        generator = rng(seed, key, "domain words")
        return [" ".join(words[int(n)] for n in generator.integers(len(words), size=length)) for _ in range(self.draws)]


def make_probes(settings: Calibration, *, k: int, bare_line: bool) -> Probes | None:
    """Return the probes of a calibration. ``bare_line`` says whether the template has words beside the input."""
    if settings.method == "contextual":
        return FixedProbes(CONTENT_FREE if bare_line else CONTENT_FREE[:2])
    if settings.method == "pmi":
        if not settings.premise and not bare_line:
            raise ConfigError(
                "the template has no words of its own to score in place of an input",
                hint="name a premise: `calibration.premise='a film review'`, or use a template",
            )
        return FixedProbes((settings.premise,))
    if settings.method == "domain":
        if k == 0:
            raise ConfigError(
                "domain calibration draws words from the demonstrations, and this method has none",
                hint="`calibrate='contextual'` or `calibrate='batch'`",
            )
        return DomainWordProbes(settings.draws)
    return None
