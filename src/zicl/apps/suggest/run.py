"""From a classifier and unlabelled texts to signs.

texts ─ a seeded sample ─┬─ search the corpus ──────── near? neighbours?
                         └─ ask the language model ─┬─ even labels? cut? close?
                            three seeds, channel    ├─ do seeds agree?
                            one seed, direct        └─ do inferences agree?
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zicl._util.progress import Report, silent
from zicl._util.random import rng
from zicl.apps.suggest import signals
from zicl.apps.suggest.passes import Passes, ask
from zicl.apps.suggest.signal import Signal
from zicl.apps.suggest.surroundings import Surroundings, look_around
from zicl.classifier import ZICLClassifier
from zicl.exceptions import ConfigError, TextError
from zicl.inputs.texts import check_texts
from zicl.score.factory import Settings

SAMPLE = 40
# Below that a share says nothing.
_LEAST = 5


@dataclass(frozen=True)
class Suggestion:
    """The signs, and how many texts they come from: ``asked`` of ``distinct`` different ones among ``texts``."""

    texts: int
    distinct: int
    asked: int
    signals: tuple[Signal, ...]


def suggest(
    classifier: ZICLClassifier, texts: Iterable[str], *, sample: int = SAMPLE, report: Report = silent
) -> Suggestion:
    """Signs from a seeded sample of the different texts. A fitted classifier is not changed by it."""
    settings = Settings(**classifier.settings_)
    if settings.labelling.words == "neighbours":
        raise ConfigError(
            "every text has options of its own, and these signs are about labels that all texts share",
            hint="name the labels: --labels terrible,great; for options of a row's own, go straight to zicl check",
        )
    given = check_texts(texts)
    distinct = sorted({text.strip() for text in given})
    chosen = draw(distinct, sample, classifier.seed_)
    around = None
    if classifier.index_ is not None:
        around = look_around(classifier.index_, chosen, settings.retrieval, report)
    passes = ask(classifier, chosen, report)
    found = (*_corpus_signals(around, settings), *_model_signals(passes, classifier.labels_.names))
    return Suggestion(len(given), len(distinct), len(chosen), found)


def draw(distinct: list[str], count: int, seed: int) -> list[str]:
    """At most ``count`` of the texts, sorted: the seed decides, not the file's order."""
    if min(len(distinct), count) < _LEAST:
        raise TextError(
            f"{len(distinct)} different texts were given and {count} asked for; expected at least {_LEAST} of each",
            hint=f"give more unlabelled texts, and a sample of {SAMPLE} or more",
        )
    chosen = rng(seed, "texts to look at").choice(len(distinct), min(count, len(distinct)), replace=False)
    return [distinct[int(number)] for number in sorted(chosen)]


def _corpus_signals(around: Surroundings | None, settings: Settings) -> list[Signal]:
    """What the corpus says; neighbours matter only where they are shown."""
    if around is None:
        return []
    found = [signals.similarity(around.nearest), signals.far(around.nearest)]
    return [*found, signals.alone(around.alone)] if settings.retrieval.method == "physical" else found


def _model_signals(passes: Passes, names: tuple[str, ...]) -> list[Signal]:
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
