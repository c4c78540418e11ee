"""What a classification gives back, as small frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from zicl.calibrate.scores import joined, log_softmax
from zicl.corpus.store import Sentence
from zicl.demos.labels import Labels
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
    """A text with its demonstrations (farthest first) and its prompt, ready to be scored.

    ``labels`` are those it has to choose from; ``assignment`` is the number of the draw of labels.
    """

    text: str
    demos: tuple[Shown, ...]
    prompt: Prompt
    labels: Labels
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
    where there are several, and ``terms`` what each kind of opinion made of them, by its name.
    """

    prepared: Prepared
    scores: tuple[LabelScore, ...]
    probes: tuple[tuple[float, ...], ...] = ()
    parts: tuple[Result, ...] = ()
    terms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

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

    @cached_property
    def spread(self) -> float | None:
        """How far the label's probability lies apart over the draws of labels: a standard deviation."""
        draws: dict[int, list[list[float]]] = {}
        for part in self.parts:
            draws.setdefault(part.prepared.assignment, []).append([score.value for score in part.scores])
        if len(draws) < 2:
            return None
        chosen = [score.label for score in self.scores].index(self.label)
        shares = [np.exp(log_softmax(joined(np.array(rows))))[chosen] for rows in draws.values()]
        return float(np.std(shares, ddof=1))
