"""Asking the language model about the sample: once under each seed, and once with the other inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zicl._util.progress import Report, silent
from zicl.classifier import ZICLClassifier
from zicl.config import WITHOUT_DRAWS, Calibration
from zicl.prompt.builder import Inference
from zicl.score.calibration import Scores
from zicl.score.factory import Settings, assemble
from zicl.score.results import Result

# They give three pairs to compare; each further seed would cost a whole pass.
SEEDS = 3


@dataclass(frozen=True)
class Pass:
    """The results of all texts under one seed with one inference."""

    inference: Inference
    seed: int
    results: tuple[Result, ...]

    @property
    def labels(self) -> list[str]:
        """The label of each text."""
        return [result.label for result in self.results]

    @property
    def scores(self) -> Scores:
        """What is compared, one row a text, one column a label in the labels' order."""
        return np.array([[score.value for score in result.scores] for result in self.results], dtype=np.float64)


@dataclass(frozen=True)
class Passes:
    """``draws`` differ in the seed alone, the classifier's own first; ``other`` in the inference alone.

    ``drawn`` is what of the demonstrations a seed decides.
    """

    draws: tuple[Pass, ...]
    other: Pass
    drawn: tuple[str, ...]

    @property
    def main(self) -> Pass:
        """The pass with the classifier's own seed and inference."""
        return self.draws[0]


def ask(classifier: ZICLClassifier, texts: Sequence[str], report: Report = silent) -> Passes:
    """All passes over one language model and one corpus, which are not loaded again."""
    settings = Settings(**classifier.settings_)
    own: Inference = "direct" if settings.scoring.inference == "direct" else "channel"
    drawn = _drawn(settings)
    seeds = range(classifier.seed_, classifier.seed_ + (SEEDS if drawn else 1))
    draws = tuple(_pass(classifier, texts, own, seed, report) for seed in seeds)
    other = _pass(classifier, texts, "direct" if own == "channel" else "channel", seeds[0], report)
    return Passes(draws, other, drawn)


def _drawn(settings: Settings) -> tuple[str, ...]:
    """What a seed decides: labels unless they are the model's own, not shown or have a seed, sentences, their order."""
    retrieval, labelling = settings.retrieval, settings.labelling
    if retrieval.k == 0:
        return ()
    labels = labelling.source == "random" and labelling.words != "none" and labelling.seed is None
    found = {
        "labels": labels,
        "sentences": retrieval.method not in WITHOUT_DRAWS,
        "order": retrieval.order == "shuffled",
    }
    return tuple(what for what, is_drawn in found.items() if is_drawn)


def _pass(classifier: ZICLClassifier, texts: Sequence[str], inference: Inference, seed: int, report: Report) -> Pass:
    stage, done = f"asking the language model: {inference}, seed {seed}", 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(stage, done, len(texts))

    advance(0)
    settings = plain(Settings(**classifier.settings_), inference)
    ensemble = assemble(
        classifier.labels_, classifier.lm_, classifier.index_, settings, seed=seed, offline=classifier.offline
    )
    return Pass(inference, seed, tuple(ensemble.run(texts, advance)))


def plain(settings: Settings, inference: Inference) -> Settings:
    """The settings without what hides a sign: calibration, several draws or inferences, the encoder's opinion."""
    return settings._replace(
        labelling=settings.labelling.model_copy(update={"assignments": 1}),
        scoring=settings.scoring.model_copy(update={"inference": inference, "encoder": False}),
        calibration=Calibration(),
    )
