"""Where texts stand in a corpus: how near its nearest sentence is, and whether the nearest have neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.apps.suggest import signals
from zicl.apps.suggest.signals import Signal
from zicl.classifier import ZICLClassifier
from zicl.config import Calibration, Retrieval, Settings
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

STAGE = "searching the corpus"


@dataclass(frozen=True)
class CorpusFit:
    """Of each text the cosine of the nearest sentence that may be shown; of its k nearest, whether each stands alone.

    The nearest sentences of all texts stand one after the other in ``alone``.
    """

    nearest: tuple[float, ...]
    alone: tuple[bool, ...]


def measure_corpus_fit(
    index: Searchable, texts: Sequence[Text], settings: Retrieval, report: ProgressReport = silent
) -> CorpusFit:
    """Search the corpus as the retrieval methods do: a text never finds itself, nor the document it comes from."""
    nearest, alone, one = list[float](), list[bool](), Nearest(exclude_self=settings.exclude_self)
    for done, text in enumerate(texts):
        report(STAGE, done, len(texts))
        query = Query(text)
        nearest += [found.similarity or 0.0 for found in one.retrieve(index, query, 1)]
        hits = CandidateFilter(index, query, exclude_self=settings.exclude_self).hits()
        alone += [index.neighbour(hit.row) is None for hit in islice(hits, settings.k)]
    report(STAGE, len(texts), len(texts))
    return CorpusFit(tuple(nearest), tuple(alone))


# -- Asking the language model about the sample: once under each seed, and once with the other inference.


# They give three pairs to compare; each further seed would cost a whole pass.
SEEDS = 3


@dataclass(frozen=True)
class SampledScores:
    """The results of all texts under one seed with one inference."""

    inference: Inference
    seed: int
    results: tuple[Prediction, ...]

    @property
    def labels(self) -> list[str]:
        """The label of each text."""
        return [result.label for result in self.results]

    @property
    def scores(self) -> Scores:
        """What is compared, one row a text, one column a label in the labels' order."""
        return np.array([[score.value for score in result.scores] for result in self.results], dtype=np.float64)


@dataclass(frozen=True)
class ScoringPasses:
    """``draws`` differ in the seed alone, the classifier's own first; ``other`` in the inference alone.

    ``drawn`` is what of the demonstrations a seed decides.
    """

    draws: tuple[SampledScores, ...]
    other: SampledScores
    drawn: tuple[str, ...]

    @property
    def main(self) -> SampledScores:
        """The pass with the classifier's own seed and inference."""
        return self.draws[0]


def run_passes(classifier: ZICLClassifier, texts: Sequence[Text], report: ProgressReport = silent) -> ScoringPasses:
    """All passes over one language model and one corpus, which are not loaded again."""
    settings = classifier.settings_
    own: Inference = "direct" if settings.scoring.inference == "direct" else "channel"
    drawn = _drawn(settings)
    seeds = range(classifier.seed_, classifier.seed_ + (SEEDS if drawn else 1))
    draws = tuple(_pass(classifier, texts, own, seed, report) for seed in seeds)
    other = _pass(classifier, texts, "direct" if own == "channel" else "channel", seeds[0], report)
    return ScoringPasses(draws, other, drawn)


def _drawn(settings: Settings) -> tuple[str, ...]:
    """What a seed decides: labels unless they are the model's own, not shown or have a seed, sentences, their order."""
    retrieval, labelling = settings.retrieval, settings.labelling
    if retrieval.k == 0:
        return ()
    labels = labelling.source == "random" and labelling.words != "none" and labelling.seed is None
    found = {
        "labels": labels,
        "sentences": RETRIEVERS.get(retrieval.method).draws,
        "order": retrieval.order == "shuffled",
    }
    return tuple(what for what, is_drawn in found.items() if is_drawn)


def _pass(
    classifier: ZICLClassifier, texts: Sequence[Text], inference: Inference, seed: int, report: ProgressReport
) -> SampledScores:
    stage, done = f"asking the language model: {inference}, seed {seed}", 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(stage, done, len(texts))

    advance(0)
    settings = plain(classifier.settings_, inference)
    ensemble = build_ensemble(
        classifier.labels_, classifier.lm_, classifier.index_, settings, seed=seed, offline=classifier.offline
    )
    return SampledScores(inference, seed, tuple(ensemble.run(texts, advance)))


def plain(settings: Settings, inference: Inference) -> Settings:
    """The settings without what hides a sign: calibration, several draws or inferences, the encoder's opinion."""
    return settings._replace(
        labelling=settings.labelling.model_copy(update={"assignments": 1}),
        scoring=settings.scoring.model_copy(update={"inference": inference, "encoder": False}),
        calibration=Calibration(),
    )


# -- From a classifier and unlabelled texts to signs.


SAMPLE = 40
# Below that a share says nothing.
_LEAST = 5


@dataclass(frozen=True)
class Diagnosis:
    """The signs, and how many texts they come from: ``asked`` of ``distinct`` different ones among ``texts``."""

    texts: int
    distinct: int
    asked: int
    signals: tuple[Signal, ...]


def suggest(
    classifier: ZICLClassifier, texts: Iterable[Any], *, sample: int = SAMPLE, report: ProgressReport = silent
) -> Diagnosis:
    """Signs from a seeded sample of the different texts. A fitted classifier is not changed by it."""
    settings = classifier.settings_
    if settings.labelling.words == "neighbours":
        raise ConfigError(
            "every text has options of its own, and these signs are about labels that all texts share",
            hint="name the labels: --labels terrible,great; for options of a row's own, go straight to zicl check",
        )
    given = check_texts(texts)
    distinct = sorted({text.strip() for text in given}, key=text_key)
    chosen = draw(distinct, sample, classifier.seed_)
    around = None
    if classifier.index_ is not None:
        around = measure_corpus_fit(classifier.index_, chosen, settings.retrieval, report)
    passes = run_passes(classifier, chosen, report)
    found = (*_corpus_signals(around, settings), *_model_signals(passes, classifier.labels_.names))
    return Diagnosis(len(given), len(distinct), len(chosen), found)


def draw(distinct: list[Text], count: int, seed: int) -> list[Text]:
    """At most ``count`` of the texts, sorted: the seed decides, not the file's order."""
    if min(len(distinct), count) < _LEAST:
        raise TextError(
            f"{len(distinct)} different texts were given and {count} asked for; expected at least {_LEAST} of each",
            hint=f"give more unlabelled texts, and a sample of {SAMPLE} or more",
        )
    chosen = rng(seed, "texts to look at").choice(len(distinct), min(count, len(distinct)), replace=False)
    return [distinct[int(number)] for number in sorted(chosen)]


def _corpus_signals(around: CorpusFit | None, settings: Settings) -> list[Signal]:
    """What the corpus says; neighbours matter only where they are shown."""
    if around is None:
        return []
    found = [signals.similarity(around.nearest), signals.far(around.nearest)]
    return [*found, signals.alone(around.alone)] if settings.retrieval.method == "physical" else found


def _model_signals(passes: ScoringPasses, names: tuple[str, ...]) -> list[Signal]:
    found = []
    for each in (passes.main, passes.other):
        found += [signals.evenness(each.scores, each.inference), signals.largest(each.scores, names, each.inference)]
    if len(passes.draws) > 1:
        found.append(signals.seeds([each.labels for each in passes.draws], passes.drawn))
    found.append(signals.inferences([passes.main.labels, passes.other.labels]))
    prompts = [result.prepared.prompt for result in passes.main.results]
    found.append(signals.cut([prompt.input_cut for prompt in prompts]))
    if any(prompt.kept + prompt.dropped for prompt in prompts):
        found.append(signals.dropped([prompt.kept for prompt in prompts], [prompt.dropped for prompt in prompts]))
    return [*found, signals.close(passes.main.scores)]
