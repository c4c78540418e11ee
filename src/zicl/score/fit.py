"""Learn from a pile of unlabelled texts: sample → vectors → the experts' answers → the model of the pile.

The encoder answers for every text. The language model is asked only if the settings say so, about the least certain
texts; its answers enter the fit and no prediction.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zicl._util.counts import counted
from zicl._util.failures import storage_errors
from zicl._util.files import home
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng, stable_hash
from zicl.config import Pile
from zicl.exceptions import ConfigError, PileWarning
from zicl.inputs.pair import Text, text_key
from zicl.prompt.labels import NO_LABEL, SEPARATOR
from zicl.retrieve.encoder import DEFAULT_ENCODER
from zicl.score.calibration import Scores, log_softmax
from zicl.score.decision import fit_multi, fit_none
from zicl.score.ensemble import Ensemble
from zicl.score.experts import Vectors
from zicl.score.pile import MIN_TEXTS, Ints, PileModel, fit_pile
from zicl.score.results import Prediction

# Texts are encoded, and the language model is asked, in groups of these sizes: progress is shown after each. (In
# smaller groups of texts there is more padding, see zicl.retrieve.embedding.)
_ENCODED, _ASKED = 1024, 16
# From this share of a pile on, one label attracts everything.
_ALL = 0.98
# Letters of other alphabets among all letters, from which on an English encoder is likely to know nothing.
_FOREIGN = 0.3

# Whether something is known of a text, or of a text and a label.
Known = NDArray[np.bool_]

# The slow steps, which other machines may do: what each group of texts gets, in order.
Encode = Callable[[Sequence[Sequence[Text]]], Iterable[Vectors]]
Ask = Callable[[Sequence[Sequence[Text]]], Iterable[Sequence[Prediction]]]


@dataclass(frozen=True)
class Question:
    """The language model that may be asked about texts of a pile, and a key for what its answers depend on.

    ``ask`` asks it, ``workers`` groups at a time; ``ensemble`` is the one here, to measure how fast that is.
    """

    ensemble: Ensemble
    key: str
    ask: Ask
    workers: int = 1


@dataclass(frozen=True)
class LearnedPile:
    """The model of a pile, the vectors of its texts, and how many the language model was asked about."""

    model: PileModel
    vectors: Mapping[Text, Vectors]
    asked: int


def learn_pile(
    ensemble: Ensemble,
    settings: Pile,
    texts: Iterable[Text],
    gold: Mapping[Text, tuple[str, ...]],
    *,
    seed: int = 0,
    question: Callable[[], Question] | None = None,
    budget: float | None = None,
    encode: Encode | None = None,
    report: ProgressReport = silent,
) -> LearnedPile | None:
    """Return what the pile teaches, or None with a warning if it is too small.

    Parameters
    ----------
    ensemble
        Has the encoder expert.
    settings
        How many texts to learn from, the labels' shares if they are known, and how often to ask the language model.
    texts
        The pile; equal texts count once.
    gold
        The labels of some of the texts: one each, unless the decision allows several, or none of them.
    seed
        Draws the sample of a large pile.
    question
        Loads the language model to ask.
    budget
        Ask it for about this many seconds, instead of about a number of texts.
    encode
        Encodes groups of texts elsewhere; without it they are encoded here.
    report
        Called with the progress of each stage.

    """
    expert, labels = ensemble.encoder_expert, ensemble.labels
    if expert is None:
        raise ConfigError(
            "a pile is learned from through an encoder, and no expert has one", hint="`scoring.experts=('encoder',)`"
        )
    chosen = sample_pile(texts, gold, settings.texts, seed)
    few = f"{counted(len(chosen), 'different text is', 'different texts are')} too few to learn"
    if len(chosen) < MIN_TEXTS and (ensemble.decision.multi or ensemble.decision.none):
        raise ConfigError(
            f"{few} how many labels a text has, {MIN_TEXTS} are needed",
            hint="give more texts like these (`fit`), or leave out `none` and `multi`",
        )
    if len(chosen) < MIN_TEXTS:
        warnings.warn(
            f"{few} from, {MIN_TEXTS} are needed: each text is labelled by itself, without gold labels, shares or "
            "answers of a language model",
            PileWarning,
            stacklevel=2,
        )
        return None
    vectors = _encode(chosen, encode or partial(map, ensemble.embed), report)
    if expert.encoder == DEFAULT_ENCODER:
        _check_letters(ensemble, chosen)
    answers = log_softmax(expert.scores(vectors, labels) - ensemble.priors.get(expert.name, 0.0))
    known = np.array([[name in gold.get(text, ()) for name in ensemble.names] for text in chosen])
    is_known = np.array([text in gold for text in chosen])
    shares = None if settings.shares is None else np.array([settings.shares[name] for name in ensemble.names])
    report("learning from the texts", 0, None)
    asked, key = 0, ""
    if question is not None:
        among_labels = None if ensemble.decision.none else shares
        first = fit_pile(vectors, answers, gold=_numbers(known[:, : len(labels)]), shares=among_labels)
        loaded, order = question(), least_certain(first, answers, vectors, chosen, is_known)
        asked = _count_questions(loaded, [chosen[n] for n in order], settings.lm_rows, budget, report)
        if asked:
            rows, key = order[:asked], loaded.key
            answers[rows] += _answers(loaded, [chosen[n] for n in rows], report)
    closeness = ensemble.closeness(vectors)
    if ensemble.decision.multi:
        model = fit_multi(vectors, answers, known, is_known)
    elif closeness is not None:
        model = fit_none(vectors, answers, closeness, gold=_numbers(known), shares=shares)
    else:
        model = fit_pile(vectors, answers, gold=_numbers(known), shares=shares)
    if not ensemble.decision.multi:
        _check_labels(model.join(answers, vectors, closeness), ensemble.names)
    known_vectors = dict(zip(chosen, vectors, strict=True))
    return LearnedPile(replace(model, source=_source(chosen, gold, key)), known_vectors, asked)


def _source(chosen: Iterable[Text], gold: Mapping[Text, tuple[str, ...]], key: str) -> str:
    """Return a hash of what is learned from: texts, their gold labels, and the ``key`` of a model that was asked."""
    taught = {text: SEPARATOR.join(names) or NO_LABEL for text, names in gold.items()}
    source = stable_hash(key, *(f"{text_key(text)}\x1e{taught.get(text, '')}" for text in chosen))
    return f"{source:032x}"


def _numbers(known: Known) -> Ints:
    """Return the number of each text's label, or -1 where it is not known."""
    return np.where(known.any(axis=1), known.argmax(axis=1), -1)


def sample_pile(texts: Iterable[Text], gold: Iterable[Text], count: int, seed: int) -> list[Text]:
    """Return at most ``count`` different texts, those with a gold label first; the order of the pile plays no role.

    >>> sample_pile(["b", "a", "b", "c"], ["c"], 2, seed=0)[0]
    'c'
    """
    known = sorted(gold, key=text_key)
    others = sorted({text.strip() for text in texts} - set(known), key=text_key)
    if (room := max(count - len(known), 0)) < len(others):
        drawn = sorted(rng(seed, "texts to learn from").choice(len(others), room, replace=False))
        others = [others[int(n)] for n in drawn]
    return known + others


def least_certain(model: PileModel, answers: Scores, vectors: Vectors, texts: Sequence[Text], known: Known) -> Ints:
    """Return the texts whose label is not known, those first whose margin is small and that are similar to many others.

    Decided on rounded numbers, with ties broken by a hash of the text: the last digits of a machine do not matter.
    """
    probabilities = np.sort(np.exp(log_softmax(model.join(answers, vectors))), axis=1)
    margins = probabilities[:, -1] - probabilities[:, -2]
    similarities = vectors @ vectors.mean(axis=0)
    gains = np.round((1 - margins) * similarities, 3)
    ties = [stable_hash(text_key(text)) for text in texts]
    rows = [n for n in range(len(texts)) if not known[n]]
    return np.array(sorted(rows, key=lambda n: (-gains[n], ties[n])), dtype=np.int64)


def _encode(texts: Sequence[Text], encode: Encode, report: ProgressReport) -> Vectors:
    """Return the vectors of texts, encoded in an order that gold labels play no role in."""
    order = sorted(range(len(texts)), key=lambda n: text_key(texts[n]))
    groups = [[texts[n] for n in order[start : start + _ENCODED]] for start in range(0, len(order), _ENCODED)]
    report("encoding the texts", 0, len(texts))
    parts = list[Vectors]()
    for part in encode(groups):
        parts.append(part)
        report("encoding the texts", sum(map(len, parts)), len(texts))
    encoded = np.concatenate(parts)
    vectors = np.empty_like(encoded)
    vectors[order] = encoded
    return vectors


# -- asking the language model: every answer is stored as it comes ---------------------------------------


def _store(question: Question) -> Path:
    return home() / "answers" / f"{question.key}.jsonl"


def _read(question: Question) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Return the stored answers by text, and the numbers of texts that earlier budgets became."""
    answers, budgets = dict[str, list[float]](), dict[str, int]()
    if _store(question).is_file():
        for line in _store(question).read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                # A line that was being written when the process was killed.
                continue
            if "budget" in entry:
                budgets[entry["budget"]] = entry["texts"]
            else:
                answers[entry["text"]] = entry["scores"]
    return answers, budgets


def _append(question: Question, entries: Iterable[Mapping[str, object]]) -> None:
    path = _store(question)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with storage_errors(path), path.open("a", encoding="utf-8") as stream:
        # The line break comes first: after a line that a kill cut short, the next one is still readable.
        stream.write("".join("\n" + json.dumps(entry) for entry in entries))


def _text_hash(text: Text) -> str:
    return f"{stable_hash(text_key(text)):032x}"


def _count_questions(
    question: Question, order: Sequence[Text], count: int, budget: float | None, report: ProgressReport
) -> int:
    """Return how many of the texts to ask about; a budget in seconds becomes a number of texts once, by a probe."""
    if budget is None:
        return min(count, len(order))
    pile = stable_hash(*map(text_key, order))
    name = f"{budget:g} s {pile:032x}"
    stored = _read(question)[1]
    if name not in stored:
        report("timing the language model", 0, None)
        started = time.monotonic()
        probe = list(order[:_ASKED])
        question.ensemble.run(probe)
        rate = question.workers * len(probe) / max(time.monotonic() - started, 1e-9)
        _append(question, [{"budget": name, "texts": int(min(len(order), budget * rate))}])
        stored = _read(question)[1]
    return stored[name]


def _answers(question: Question, texts: Sequence[Text], report: ProgressReport) -> Scores:
    """Return the language model's log-probabilities for texts; what is stored is not asked again."""
    stored = _read(question)[0]
    missing = [text for text in texts if _text_hash(text) not in stored]
    groups = [missing[start : start + _ASKED] for start in range(0, len(missing), _ASKED)]
    done, asked, started = len(texts) - len(missing), 0, time.monotonic()
    report("asking the language model", done, len(texts))
    for group, predictions in zip(groups, question.ask(groups), strict=True):
        new = {}
        for text, prediction in zip(group, predictions, strict=True):
            new[_text_hash(text)] = [score.value for score in prediction.scores]
        _append(question, ({"text": key, "scores": scores} for key, scores in new.items()))
        stored |= new
        asked += len(group)
        rate = asked / max(time.monotonic() - started, 1e-9)
        left = (len(missing) - asked) / rate
        report("asking the language model", done + asked, len(texts), f"{rate:.1f} texts a second, {left:.0f} s left")
    rows = np.array([stored[_text_hash(text)] for text in texts])
    return log_softmax(rows)


# -- signs that something is wrong -------------------------------------------------------------------------


def _check_letters(ensemble: Ensemble, texts: Sequence[Text]) -> None:
    """Warn if texts or labels are written in letters that an English encoder does not know."""
    words = "".join(f"{label.words}{label.description}" for label in ensemble.labels)
    for what, sample in (("labels", words), ("texts", "".join(map(str, texts[:200])))):
        letters = [letter for letter in sample if letter.isalpha()]
        foreign = sum(not letter.isascii() for letter in letters)
        if letters and foreign / len(letters) > _FOREIGN:
            warnings.warn(
                f"the {what} are not in Latin letters, and the default encoder knows English: the answers may mean "
                "nothing. Use an encoder for this language (`encoder=…`), and describe the labels in it",
                PileWarning,
                stacklevel=3,
            )


def _check_labels(scores: Scores, names: Sequence[str]) -> None:
    """Warn if one label attracts everything."""
    counts = np.bincount(scores.argmax(axis=1), minlength=len(names)) / len(scores)
    top = int(counts.argmax())
    if counts[top] >= _ALL:
        warnings.warn(
            f"{names[top]!r} gets {counts[top]:.0%} of the texts. If that is not so, describe the labels (description "
            "in labels.toml), give the shares you know (`pile.shares`), or check some rows by hand (zicl check, "
            "--gold)",
            PileWarning,
            stacklevel=3,
        )
