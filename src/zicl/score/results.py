"""What a classification gives back, as small frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from zicl.corpus.store import Sentence
from zicl.prompt.builder import Inference, Prompt
from zicl.prompt.labels import Labels
from zicl.score.calibration import log_softmax


@dataclass(frozen=True)
class Shown:
    """A pseudo-demonstration: the sentence, how it was found, and the label words it was given."""

    sentence: Sentence
    nearest: Sentence | None
    similarity: float | None
    label: str
    words: str
    kept: bool = True


def nearest_first(demos: Sequence[Shown]) -> list[Shown]:
    """The demonstrations by their similarity; where some were drawn and have none, as they stand in the prompt."""
    if any(demo.similarity is None for demo in demos):
        return list(demos)
    found = list(demos)
    # Of equals the last: those in the prompt stand farthest first, unless they were ordered otherwise.
    found.reverse()
    found.sort(key=lambda demo: -(demo.similarity or 0.0))
    return found


@dataclass(frozen=True)
class Prepared:
    """A text with its demonstrations (farthest first) and its prompt, ready to be scored.

    ``labels`` are those it has to choose from; ``inference`` and ``assignment`` (the number of the draw of labels)
    tell the ways to ask apart.
    """

    text: str
    demos: tuple[Shown, ...]
    prompt: Prompt
    labels: Labels
    inference: Inference
    assignment: int = 0


@dataclass(frozen=True)
class LabelScore:
    """The log-likelihood a label got: the sum over ``tokens`` scored tokens, and what is compared."""

    label: str
    log_likelihood: float
    tokens: int
    value: float


@dataclass(frozen=True)
class Result:
    """One classified text. Scores stand in the order of the labels.

    ``probes`` holds what the labels got for each input without content; ``parts`` the results that were joined,
    where there are several, and ``terms`` what each kind of opinion made of them, by its name. ``spread`` says how far
    the label's probability lies apart over several draws of labels: a standard deviation.
    """

    prepared: Prepared
    scores: tuple[LabelScore, ...]
    probes: tuple[tuple[float, ...], ...] = ()
    parts: tuple[Result, ...] = ()
    terms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    spread: float | None = None

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
        """Softmax of the scores under a uniform prior."""
        shares = np.exp(log_softmax(np.array([score.value for score in self.scores], dtype=np.float64)))
        return {score.label: float(share) for score, share in zip(self.scores, shares, strict=True)}

    @cached_property
    def margin(self) -> float:
        """How far the first probability is above the second."""
        first, second = sorted(self.probabilities.values(), reverse=True)[:2]
        return first - second
