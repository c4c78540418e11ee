"""What a classification gives back, as small frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zicl.corpus.store import Sentence
from zicl.demos.prompt import Prompt


@dataclass(frozen=True)
class Shown:
    """A pseudo-demonstration: the sentence, how it was found, and the label words it was given."""

    sentence: Sentence
    nearest: Sentence | None
    similarity: float | None
    label: str
    words: str
    kept: bool = True


@dataclass(frozen=True)
class Prepared:
    """A text with its demonstrations (farthest first) and its prompt, ready to be scored."""

    text: str
    demos: tuple[Shown, ...]
    prompt: Prompt


@dataclass(frozen=True)
class LabelScore:
    """The log-likelihood a label got: the sum over ``tokens`` scored tokens, and what is compared."""

    label: str
    log_likelihood: float
    tokens: int
    value: float


@dataclass(frozen=True)
class Result:
    """One classified text. Scores stand in the order of the labels."""

    prepared: Prepared
    scores: tuple[LabelScore, ...]

    @property
    def text(self) -> str:
        """The text that was classified."""
        return self.prepared.text

    @cached_property
    def label(self) -> str:
        """The label of the highest score."""
        return max(self.scores, key=lambda score: score.value).label

    @cached_property
    def probabilities(self) -> dict[str, float]:
        """Softmax of the scores under a uniform prior. Not calibrated."""
        values = np.array([score.value for score in self.scores], dtype=np.float64)
        shares = np.exp(values - values.max())
        shares /= shares.sum()
        return {score.label: float(share) for score, share in zip(self.scores, shares, strict=True)}

    @cached_property
    def margin(self) -> float:
        """How far the first probability is above the second."""
        first, second = sorted(self.probabilities.values(), reverse=True)[:2]
        return first - second
