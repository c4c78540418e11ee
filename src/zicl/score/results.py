"""What a classification returns, as small frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zicl.config import ONE_LABEL, Decision
from zicl.corpus.store import Sentence
from zicl.inputs.pair import Text
from zicl.prompt.builder import Inference, Prompt
from zicl.prompt.labels import SEPARATOR, Labels
from zicl.score.calibration import log_softmax


@dataclass(frozen=True)
class Demonstration:
    """A pseudo-demonstration: the sentence, how it was retrieved, and the label words it was given.

    ``kept`` is False for one that was dropped to fit the token limit.
    """

    sentence: Sentence
    nearest: Sentence | None
    similarity: float | None
    label: str
    words: str
    kept: bool = True


def nearest_first(demos: Sequence[Demonstration]) -> list[Demonstration]:
    """Sort demonstrations by similarity; where some were drawn at random, keep the order of the prompt."""
    if any(demo.similarity is None for demo in demos):
        return list(demos)
    # Ties go to the later one: the prompt has the nearest last.
    places = sorted(range(len(demos)), key=lambda n: (-(demos[n].similarity or 0.0), -n))
    return [demos[n] for n in places]


@dataclass(frozen=True)
class PreparedInput:
    """A text with its demonstrations (farthest first) and its prompt, ready to be scored.

    ``labels`` are those to choose from; ``inference`` and ``assignment`` (the number of the draw of labels) say which
    pipeline of an ensemble prepared it.
    """

    text: Text
    demos: tuple[Demonstration, ...]
    prompt: Prompt
    labels: Labels
    inference: Inference
    assignment: int = 0


@dataclass(frozen=True)
class PreparedText:
    """A text that is ready to be scored: one prepared prompt per pipeline, and its vector where an expert needs it."""

    text: Text
    labels: Labels
    inputs: tuple[PreparedInput, ...] = ()
    vector: NDArray[np.float32] | None = None

    @property
    def prompts(self) -> list[Prompt]:
        """The prompts that the language model has to score; none without one."""
        return [item.prompt for item in self.inputs]


class LabelScore(NamedTuple):
    """The ``value`` of a label that is compared, and the log-likelihood of its ``tokens`` scored tokens.

    Where no language model was asked, there is no log-likelihood.
    """

    label: str
    log_likelihood: float | None
    tokens: int
    value: float


def log_likelihoods(scores: Sequence[LabelScore]) -> tuple[float, ...]:
    """Return the labels' log-likelihoods; none where no language model was asked."""
    return tuple(score.log_likelihood for score in scores if score.log_likelihood is not None)


@dataclass(frozen=True)
class Prediction:
    """One classified text. Scores are in the order of the labels.

    ``prepared`` has the prompt and its demonstrations; it is None where no language model was asked. ``probes`` are the
    labels' log-likelihoods for each content-free input, ``parts`` the predictions of the pipelines that were joined, if
    several, and ``terms`` the score of each expert by name, with that of the pile. ``spread`` is the standard deviation
    of the predicted label's probability over several draws of labels. ``decision`` says how many labels a text gets;
    the score of its ``none`` comes last.
    """

    text: Text
    scores: tuple[LabelScore, ...]
    prepared: PreparedInput | None = None
    probes: tuple[tuple[float, ...], ...] = ()
    parts: tuple[Prediction, ...] = ()
    terms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    spread: float | None = None
    decision: Decision = ONE_LABEL

    @property
    def label(self) -> str:
        """The predicted label; several are joined by ``|``."""
        return SEPARATOR.join(self.labels)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All predicted labels: one, or with ``multi`` any number."""
        return self.decision.choose(self.probabilities)

    def top(self, count: int) -> list[tuple[str, float]]:
        """Return the likeliest labels with their probabilities, the likeliest first."""
        likeliest = sorted(self.scores, key=lambda score: -score.value)[:count]
        return [(score.label, self.probabilities[score.label]) for score in likeliest]

    @cached_property
    def probabilities(self) -> dict[str, float]:
        """The softmax of the values; with ``multi`` each label's own probability."""
        values = np.array([score.value for score in self.scores], dtype=np.float64)
        logs = -np.logaddexp(0.0, -values) if self.decision.multi else log_softmax(values)
        return dict(zip((score.label for score in self.scores), np.exp(logs).tolist(), strict=True))

    @cached_property
    def margin(self) -> float:
        """How far the probabilities are from another answer: the highest minus the second, if nothing else decides."""
        return self.decision.margin(self.probabilities)
