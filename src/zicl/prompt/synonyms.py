"""Synonyms for labels: given by the user, from the paper's tables, or searched.

The search takes candidates from WordNet, filters them by part of speech, frequency and similarity to the labels, and
ranks them by the encoder (similar to this label, and not to the others), the language model and the frequency of the
sense. benchmarks/synonyms.py compares its suggestions with lists that were written by hand.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from zicl.exceptions import SynonymError
from zicl.prompt import wordnet
from zicl.prompt.builder import Branch, Prompt, PromptScorer
from zicl.prompt.labels import Label, Labels
from zicl.prompt.tokens import EMPTY, tokenize
from zicl.prompt.wordnet import BROADER, NARROWER, NEAR, SAME, Candidate
from zicl.retrieve.encoder import Encoder

# The minimum cosine similarity to the label, by how directly WordNet relates the word to it.
_MIN_SIMILARITY = {SAME: 0.35, NEAR: 0.40, BROADER: 0.45, NARROWER: 0.40}
# A word must not be nearer to another label; antonyms embed closely, hence the tolerance.
_TOLERANCE = 0.05
# A word that WordNet's tagged texts do not hold and whose log-likelihood is below this is too rare to be understood.
_MIN_LOG_LIKELIHOOD = -18.0
# The terms of the score, chosen on one half of benchmarks/synonyms.toml.
_RELATION_COST = {SAME: 0.0, NEAR: 0.05, BROADER: 0.1, NARROWER: 0.1}
_CONTRAST_WEIGHT, _LM_WEIGHT, _LM_MAX, _SENSE_WEIGHT = 0.5, 0.05, 8.0, 0.05


@dataclass(frozen=True)
class SynonymSuggestion:
    """A synonym with its score, its cosine to the label, and ``likelier``, the log-likelihood gained by the label."""

    word: str
    score: float
    similarity: float
    likelier: float


def paper_table(words: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """Return the paper's synonyms for the words of a label set, or None if the paper has no such label set.

    >>> paper_table(["great", "terrible"])["great"]
    ('good',)
    """
    tasks = tomllib.loads(files("zicl").joinpath("data/tasks.toml").read_text(encoding="utf-8"))
    for task in tasks.values():
        table = {label["name"]: tuple(label["synonyms"]) for label in task["labels"]}
        if set(table) == set(words):
            return table
    return None


def needs_search(labels: Labels) -> bool:
    """Return whether the models have to search synonyms: some were not given, and the paper has none.

    >>> needs_search(Labels.of(["terrible", "great"])), needs_search(Labels.of(["sport", "cooking"]))
    (False, True)
    """
    return not all(label.synonyms for label in labels) and paper_table(labels.words) is None


def with_paper_synonyms(labels: Labels) -> Labels:
    """Return the labels with the paper's synonyms where none were given and it has them; nothing is searched.

    >>> with_paper_synonyms(Labels.of(["terrible", "great"]))["great"].synonyms
    ('good',)
    """
    table = None if labels.counted else paper_table(labels.words)
    if table is None:
        return labels
    return labels.with_synonyms({label.name: label.synonyms or table[label.words] for label in labels})


def complete_synonyms(
    labels: Labels, *, encoder: Callable[[], Encoder], lm: PromptScorer, offline: bool = False
) -> Labels:
    """Return the labels with synonyms: given ones stay, missing ones come from the paper or a search."""
    known: dict[str, tuple[str, ...]] = {}
    if not all(label.synonyms for label in labels):
        table = paper_table(labels.words)
        if table is not None:
            known = {label.name: table[label.words] for label in labels}
        else:
            suggestions = suggest_synonyms(labels, encoder(), lm, offline=offline)
            known = {name: (options[0].word,) for name, options in suggestions.items() if options}
    missing = [label.name for label in labels if not label.synonyms and label.name not in known]
    if missing:
        raise SynonymError(
            f"no synonym good enough was found for: {', '.join(missing)}",
            hint="name one for each: "
            + " ".join(f"--synonyms {name!r}=…" for name in missing)
            + " (in Python: labels={name: synonym}), or use the method 'naive', which needs none",
        )
    completed = labels.with_synonyms({label.name: label.synonyms or known[label.name] for label in labels})
    _check_disjoint(completed)
    return completed


def _check_disjoint(labels: Labels) -> None:
    """Check that no synonym is shared by two labels or is a label itself."""
    owner: dict[str, str] = {}
    for label in labels:
        for word in {synonym.casefold() for synonym in label.synonyms}:
            if word in owner:
                raise SynonymError(
                    f"{word!r} is a synonym of both {owner[word]!r} and {label.name!r}", hint="give one of them another"
                )
            owner[word] = label.name
    for label in labels:
        for word in (label.words.casefold(), label.name.casefold()):
            if word in owner:
                raise SynonymError(
                    f"the synonym {word!r} of {owner[word]!r} is itself the label {label.name!r}",
                    hint="give it another synonym: the model could copy this one",
                )


def suggest_synonyms(
    labels: Labels, encoder: Encoder, lm: PromptScorer, *, offline: bool = False, most: int = 3
) -> dict[str, list[SynonymSuggestion]]:
    """Return the best synonyms of every label without one, best first; an empty list if none is good enough."""
    part_of_speech = wordnet.common_part_of_speech(labels.words, offline=offline)
    candidates = {label.name: wordnet.candidates(label.words, part_of_speech, offline=offline) for label in labels}
    taken = [word for label in labels for text in (label.words, *label.synonyms) for word in text.split()]
    result = {}
    for label in labels:
        if label.synonyms:
            continue
        # A word that WordNet also relates to another label is no synonym: "emotion" for anger, beside joy.
        shared = {c.word for name, others in candidates.items() if name != label.name for c in others}
        usable = [
            c
            for c in candidates[label.name]
            if c.word not in shared and not any(wordnet.same_root(c.word, word) for word in taken)
        ]
        result[label.name] = _rank(label, usable, labels, encoder, lm)[:most]
    return _distinct(result)


def random_unigrams(*, offline: bool = False) -> list[str]:
    """Return common English words, to be used as meaningless label words."""
    return wordnet.unigrams(offline)


def _rank(
    label: Label, candidates: list[Candidate], labels: Labels, encoder: Encoder, lm: PromptScorer
) -> list[SynonymSuggestion]:
    if not candidates:
        return []
    # A synonym of the head word replaces only that: "technical issue" becomes "technical problem".
    before_head = label.words.split()[:-1]
    phrases = [c.word if c.full_phrase else " ".join([*before_head, c.word]) for c in candidates]
    texts = [f"{x.words} ({x.description})" if x.description else x.words for x in labels]
    cosines = encoder.encode(phrases) @ encoder.encode(texts).T
    column = labels.names.index(label.name)
    similarity, others = cosines[:, column], np.delete(cosines, column, axis=1).max(axis=1)
    likelier, log_likelihoods = _lm_preference(label.words, phrases, lm)
    ranked = []
    for n, candidate in enumerate(candidates):
        rare = candidate.count == 0 and log_likelihoods[n] < _MIN_LOG_LIKELIHOOD
        far = similarity[n] < _MIN_SIMILARITY[candidate.relation]
        if rare or far or similarity[n] < others[n] - _TOLERANCE:
            continue
        gain = _LM_WEIGHT * min(max(likelier[n], 0.0), _LM_MAX)
        contrast = _CONTRAST_WEIGHT * float(similarity[n] - others[n])
        cost = _RELATION_COST[candidate.relation] - _SENSE_WEIGHT * math.log(candidate.sense)
        score = float(similarity[n]) + contrast + gain - cost
        ranked.append(SynonymSuggestion(phrases[n], score, float(similarity[n]), likelier[n]))
    return sorted(ranked, key=lambda s: (-s.score, s.word))


def _lm_preference(words: str, phrases: list[str], lm: PromptScorer) -> tuple[list[float], list[float]]:
    """Return each phrase's gain in log-likelihood from "another word for …", and its log-likelihood without it."""

    def prompt(text: str) -> Prompt:
        branches = tuple(Branch(EMPTY, tokenize(lm.tokenizer, f" {phrase}")) for phrase in phrases)
        return Prompt(EMPTY, tokenize(lm.tokenizer, text), branches)

    conditional, plain = lm.score([prompt(f"Another word for {words} is"), prompt("Another word is")])
    baseline = [float(row.sum()) for row in plain]
    return [float(row.sum()) - base for row, base in zip(conditional, baseline, strict=True)], baseline


def _distinct(suggestions: dict[str, list[SynonymSuggestion]]) -> dict[str, list[SynonymSuggestion]]:
    """Drop suggestions until no word is the first choice of two labels: the lower score loses it."""
    while True:
        first: dict[str, str] = {}
        for name, options in suggestions.items():
            if not options:
                continue
            rival = first.get(options[0].word)
            if rival is not None:
                loser = name if options[0].score <= suggestions[rival][0].score else rival
                suggestions = {**suggestions, loser: suggestions[loser][1:]}
                break
            first[options[0].word] = name
        else:
            return suggestions
