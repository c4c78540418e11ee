"""``suggest``: from a fitted classifier and unlabelled texts to a diagnosis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from zicl._util.counts import counted
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.apps.suggest import signals
from zicl.apps.suggest.signals import Signal
from zicl.classifier import ZICLClassifier
from zicl.config import ONE_LABEL, Calibration, Retrieval, Settings
from zicl.exceptions import ConfigError, TextError
from zicl.inputs.pair import Text, text_key
from zicl.inputs.texts import check_texts
from zicl.prompt.builder import Inference
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import RETRIEVERS, CandidateFilter, Query
from zicl.retrieve.strategies.nearest import Nearest
from zicl.score.calibration import Scores
from zicl.score.factory import build_ensemble
from zicl.score.results import Prediction

SAMPLE = 40
# A proportion of fewer texts means nothing.
_MIN_TEXTS = 5
# Three seeds give three pairs to compare; each further one would cost another pass.
SEEDS = 3


@dataclass(frozen=True)
class Diagnosis:
    """The signals, from a sample of ``sampled`` texts out of ``distinct`` different ones among ``texts``."""

    texts: int
    distinct: int
    sampled: int
    signals: tuple[Signal, ...]


def suggest(
    classifier: ZICLClassifier, texts: Iterable[Any], *, sample: int = SAMPLE, report: ProgressReport = silent
) -> Diagnosis:
    """Diagnose a fitted classifier, which stays unchanged, on a seeded sample of the distinct texts.

    Parameters
    ----------
    classifier
        A fitted classifier.
    texts
        Unlabelled texts, or pairs, like those to be classified.
    sample
        How many distinct texts to score, about four times each: under several seeds and with both inferences.
    report
        Called with the progress of each stage.

    """
    settings = classifier.settings_
    if settings.labelling.words == "neighbours":
        raise ConfigError(
            "the options differ from text to text, but a diagnosis needs labels that all texts share",
            hint="name the labels: --labels terrible,great; for options that differ from row to row, use zicl check",
        )
    if settings.decision != ONE_LABEL:
        raise ConfigError(
            "a diagnosis is of a classifier that gives each text one label, and this one allows none, or several",
            hint="leave out `none` and `multi`",
        )
    checked = check_texts(texts)
    distinct = sorted({text.strip() for text in checked}, key=text_key)
    chosen = sample_texts(distinct, sample, classifier.seed_)
    if classifier.pipeline_ is None:
        return Diagnosis(len(checked), len(distinct), len(chosen), _encoder_signals(classifier, chosen))
    corpus_fit = None
    if classifier.index_ is not None:
        corpus_fit = measure_corpus_fit(classifier.index_, chosen, settings.retrieval, report)
    passes = run_passes(classifier, chosen, report)
    found = (*_corpus_signals(corpus_fit, settings), *_model_signals(passes, classifier.labels_.names))
    return Diagnosis(len(checked), len(distinct), len(chosen), found)


def sample_texts(distinct: list[Text], count: int, seed: int) -> list[Text]:
    """Return at most ``count`` of the texts, sorted; the sample depends on the seed and not on the file's order."""
    if min(len(distinct), count) < _MIN_TEXTS:
        raise TextError(
            f"{counted(len(distinct), 'different text was', 'different texts were')} given, and the sample is {count}; "
            f"expected at least {_MIN_TEXTS} of each",
            hint=f"give more unlabelled texts, and a sample of {SAMPLE} or more",
        )
    chosen = rng(seed, "texts to look at").choice(len(distinct), min(count, len(distinct)), replace=False)
    return [distinct[int(number)] for number in sorted(chosen)]


@dataclass(frozen=True)
class CorpusFit:
    """The similarity of each text's nearest sentence, and whether each of its k nearest sentences lacks a neighbour.

    ``without_neighbour`` holds the k nearest sentences of all texts, one text after the other.
    """

    nearest: tuple[float, ...]
    without_neighbour: tuple[bool, ...]


def measure_corpus_fit(
    index: Searchable, texts: Sequence[Text], settings: Retrieval, report: ProgressReport = silent
) -> CorpusFit:
    """Search the corpus as retrieval does: a text never finds itself or its document."""
    stage, retriever = "searching the corpus", Nearest(exclude_self=settings.exclude_self)
    nearest, without_neighbour = list[float](), list[bool]()
    for done, text in enumerate(texts):
        report(stage, done, len(texts))
        query = Query(text)
        nearest += [sentence.similarity or 0.0 for sentence in retriever.retrieve(index, query, 1)]
        hits = CandidateFilter(index, query, exclude_self=settings.exclude_self).hits()
        without_neighbour += [index.neighbour(hit.row) is None for hit in islice(hits, settings.k)]
    report(stage, len(texts), len(texts))
    return CorpusFit(tuple(nearest), tuple(without_neighbour))


@dataclass(frozen=True)
class ScoringPass:
    """The predictions of all texts under one seed with one inference."""

    inference: Inference
    seed: int
    predictions: tuple[Prediction, ...]

    @property
    def labels(self) -> list[str]:
        """Return the label of each text."""
        return [prediction.label for prediction in self.predictions]

    @property
    def scores(self) -> Scores:
        """Return one row per text, one column per label in the labels' order."""
        rows = [[score.value for score in prediction.scores] for prediction in self.predictions]
        return np.array(rows, dtype=np.float64)


@dataclass(frozen=True)
class ScoringPasses:
    """``draws`` differ only in the seed, the classifier's seed first; ``other`` differs only in the inference.

    ``drawn`` names what the seed decides about the demonstrations.
    """

    draws: tuple[ScoringPass, ...]
    other: ScoringPass
    drawn: tuple[str, ...]

    @property
    def main(self) -> ScoringPass:
        """Return the pass with the classifier's seed and inference."""
        return self.draws[0]


def run_passes(classifier: ZICLClassifier, texts: Sequence[Text], report: ProgressReport = silent) -> ScoringPasses:
    """Score the texts once under each seed, and once with the other inference."""
    settings = classifier.settings_
    inference: Inference = "direct" if settings.scoring.inference == "direct" else "channel"
    drawn = _drawn_parts(settings)
    seeds = range(classifier.seed_, classifier.seed_ + (SEEDS if drawn else 1))
    draws = tuple(_run_pass(classifier, texts, inference, seed, report) for seed in seeds)
    other = _run_pass(classifier, texts, "direct" if inference == "channel" else "channel", seeds[0], report)
    return ScoringPasses(draws, other, drawn)


def _drawn_parts(settings: Settings) -> tuple[str, ...]:
    """Return which parts of the demonstrations the seed decides."""
    retrieval, labelling = settings.retrieval, settings.labelling
    if retrieval.k == 0:
        return ()
    parts = {
        "labels": labelling.source == "random" and labelling.words != "none" and labelling.seed is None,
        "sentences": RETRIEVERS.get(retrieval.method).draws,
        "order": retrieval.order == "shuffled",
    }
    return tuple(part for part, is_drawn in parts.items() if is_drawn)


def _run_pass(
    classifier: ZICLClassifier, texts: Sequence[Text], inference: Inference, seed: int, report: ProgressReport
) -> ScoringPass:
    stage, done = f"asking the language model: {inference}, seed {seed}", 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(stage, done, len(texts))

    advance(0)
    settings = classifier.settings_
    # Calibration, averages over several draws or inferences, and the encoder expert would hide a signal.
    plain = settings._replace(
        labelling=settings.labelling.model_copy(update={"assignments": 1}),
        scoring=settings.scoring.model_copy(update={"inference": inference, "experts": ("prompt",)}),
        calibration=Calibration(),
    )
    ensemble = build_ensemble(
        classifier.labels_, classifier.lm_, classifier.index_, plain, seed=seed, offline=classifier.offline
    )
    return ScoringPass(inference, seed, tuple(ensemble.run(texts, advance)))


def _encoder_signals(classifier: ZICLClassifier, texts: Sequence[Text]) -> tuple[Signal, ...]:
    """Return the signals of a classifier that asks no language model."""
    predictions, labels = classifier.classify(texts), classifier.labels_
    scores = np.array([[score.value for score in prediction.scores] for prediction in predictions], dtype=np.float64)
    found = [
        signals.undescribed_labels(labels),
        signals.evenness(scores, "encoder"),
        signals.largest_share(scores, labels.names, "encoder"),
        signals.small_margins(scores),
    ]
    if (pile := classifier.fitted_.pile) is not None:
        found.insert(0, signals.pile_stability(pile.stability))
    return tuple(found)


def _corpus_signals(fit: CorpusFit | None, settings: Settings) -> list[Signal]:
    if fit is None:
        return []
    found = [signals.corpus_similarity(fit.nearest), signals.far_texts(fit.nearest)]
    # Neighbours matter only for the method that shows them.
    if settings.retrieval.method == "physical":
        found.append(signals.without_neighbour(fit.without_neighbour))
    return found


def _model_signals(passes: ScoringPasses, names: tuple[str, ...]) -> list[Signal]:
    found = []
    for each in (passes.main, passes.other):
        found.append(signals.evenness(each.scores, each.inference))
        found.append(signals.largest_share(each.scores, names, each.inference))
    if len(passes.draws) > 1:
        found.append(signals.seed_agreement([each.labels for each in passes.draws], passes.drawn))
    found.append(signals.inference_agreement([passes.main.labels, passes.other.labels]))
    prompts = [each.prepared.prompt for each in passes.main.predictions if each.prepared is not None]
    found.append(signals.cut_texts([prompt.input_cut for prompt in prompts]))
    if any(prompt.kept + prompt.dropped for prompt in prompts):
        found.append(signals.dropped_demos([prompt.kept for prompt in prompts], [prompt.dropped for prompt in prompts]))
    return [*found, signals.small_margins(passes.main.scores)]
