"""Synonyms for labels: given by hand, from the paper's tables, or found automatically.

Found automatically means: candidates from WordNet, filtered by part of speech and sense (through the
relation and the sense they come from), by frequency, and by the other labels; ranked by the sentence
encoder and the language model together.
"""

from __future__ import annotations

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
from zicl.prompt.wordnet import BROADER, NEAR, SAME, Candidate
from zicl.retrieve.encoder import Encoder

# The least cosine similarity to the label, by how directly WordNet relates the word to it.
_LEAST = {SAME: 0.35, NEAR: 0.40, BROADER: 0.45}
# A word must not be nearer to another label than to its own; antonyms embed closely, hence the slack.
_SLACK = 0.05
# A word nobody tagged in WordNet's texts and the model finds this unlikely is too rare to be understood.
_RAREST = -18.0
_LM_WEIGHT, _LM_MOST, _RELATION_COST, _SENSE_COST = 0.05, 8.0, 0.05, 0.02


@dataclass(frozen=True)
class SynonymSuggestion:
    """A synonym with what speaks for it: encoder similarity, and how much likelier the label makes it."""

    word: str
    score: float
    similarity: float
    likelier: float


def paper_table(words: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """The paper's synonyms for the words of a label set, if it is one of the paper's.

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
    """Whether synonyms have to be found with the models: some were not given, and the paper has none.

    >>> needs_search(Labels.of(["terrible", "great"])), needs_search(Labels.of(["sport", "cooking"]))
    (False, True)
    """
    return not all(label.synonyms for label in labels) and paper_table(labels.words) is None


def complete_synonyms(
    labels: Labels, *, encoder: Callable[[], Encoder], lm: PromptScorer, offline: bool = False
) -> Labels:
    """The labels with a synonym each: those given stay, the rest come from the paper or are found."""
    known: dict[str, tuple[str, ...]] = {}
    if not all(label.synonyms for label in labels):
        table = paper_table(labels.words)
        if table is not None:
            known = {label.name: table[label.words] for label in labels}
        else:
            found = suggest_synonyms(labels, encoder(), lm, offline=offline)
            known = {name: (options[0].word,) for name, options in found.items() if options}
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
    """A synonym that stands for two labels, or is a label itself, would say the wrong thing."""
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
    """The best synonyms for every label without one, best first; an empty list where none is good enough."""
    part = wordnet.common_part_of_speech(labels.words, offline=offline)
    words = {label.name: wordnet.candidates(label.words, part, offline=offline) for label in labels}
    result = {}
    for label in labels:
        if label.synonyms:
            continue
        usable = [
            c for c in words[label.name] if _is_other_word(c.word, labels) and not _is_shared(c.word, label, words)
        ]
        result[label.name] = _rank(label, usable, labels, encoder, lm)[:most]
    return _distinct(result)


def random_unigrams(*, offline: bool = False) -> list[str]:
    """English words for labels that say nothing."""
    return wordnet.unigrams(offline)


def _is_other_word(word: str, labels: Labels) -> bool:
    """Not a form of any label or of any synonym given."""
    taken = [part for label in labels for text in (label.words, *label.synonyms) for part in text.split()]
    return not any(wordnet.same_root(word, part) for part in taken)


def _is_shared(word: str, label: Label, words: dict[str, list[Candidate]]) -> bool:
    """Whether WordNet relates the word to another label too ("emotion" is no synonym of anger beside joy)."""
    return any(c.word == word for name, others in words.items() if name != label.name for c in others)


def _rank(
    label: Label, candidates: list[Candidate], labels: Labels, encoder: Encoder, lm: PromptScorer
) -> list[SynonymSuggestion]:
    if not candidates:
        return []
    phrases = [c.word if c.whole else _phrase(label.words, c.word) for c in candidates]
    texts = [f"{x.words} ({x.description})" if x.description else x.words for x in labels]
    similarity = encoder.encode(phrases) @ encoder.encode(texts).T
    place = labels.names.index(label.name)
    own, others = similarity[:, place], np.delete(similarity, place, axis=1).max(axis=1)
    likelier, plain = _lm_preference(label.words, phrases, lm)
    ranked = []
    for number, candidate in enumerate(candidates):
        rare = candidate.count == 0 and plain[number] < _RAREST
        if rare or own[number] < _LEAST[candidate.relation] or own[number] < others[number] - _SLACK:
            continue
        gain = _LM_WEIGHT * min(max(likelier[number], 0.0), _LM_MOST)
        cost = _RELATION_COST * candidate.relation + _SENSE_COST * candidate.sense
        ranked.append(
            SynonymSuggestion(phrases[number], float(own[number]) + gain - cost, float(own[number]), likelier[number])
        )
    return sorted(ranked, key=lambda s: (-s.score, s.word))


def _phrase(words: str, synonym: str) -> str:
    """A phrase keeps all but its head word: "technical issue" becomes "technical problem"."""
    return " ".join([*words.split()[:-1], synonym])


def _lm_preference(words: str, phrases: list[str], lm: PromptScorer) -> tuple[list[float], list[float]]:
    """How much likelier each phrase is after "another word for …", and how likely it is without that."""

    def prompt(text: str) -> Prompt:
        branches = tuple(Branch(EMPTY, tokenize(lm.tokenizer, f" {phrase}")) for phrase in phrases)
        return Prompt(EMPTY, tokenize(lm.tokenizer, text), branches)

    asked, plain = lm.score([prompt(f"Another word for {words} is"), prompt("Another word is")])
    likelihood = [float(row.sum()) for row in plain]
    return [float(row.sum()) - base for row, base in zip(asked, likelihood, strict=True)], likelihood


def _distinct(found: dict[str, list[SynonymSuggestion]]) -> dict[str, list[SynonymSuggestion]]:
    """No word is first choice for two labels: the one it fits less takes its next."""
    while True:
        first: dict[str, str] = {}
        for name, options in found.items():
            if not options:
                continue
            rival = first.get(options[0].word)
            if rival is not None:
                loser = name if options[0].score <= found[rival][0].score else rival
                found = {**found, loser: found[loser][1:]}
                break
            first[options[0].word] = name
        else:
            return found
