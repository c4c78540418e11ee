"""Candidate synonyms from WordNet, and its single words as a list of English unigrams."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from zicl._util.catalog import nltk_folder

# How directly WordNet relates a candidate to the label: a synonym, a near one, a broader word.
SAME, NEAR, BROADER = 0, 1, 2
_SENSES = 6


@dataclass(frozen=True)
class Candidate:
    """A word that may stand for a label.

    ``sense`` is the rank of the sense it came from (0 is the commonest of its part of speech), ``whole`` says
    that it stands for all of a phrase and not only for its head word.
    """

    word: str
    relation: int
    sense: int
    whole: bool
    count: int


@lru_cache(maxsize=1)
def wordnet(offline: bool = False) -> Any:
    """NLTK's reader over the catalog's WordNet."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader
    from nltk.data import FileSystemPathPointer

    folder = nltk_folder("wordnet", offline=offline)
    with warnings.catch_warnings():
        # It has no other languages, and says so.
        warnings.simplefilter("ignore", UserWarning)
        return WordNetCorpusReader(FileSystemPathPointer(str(folder / "corpora" / "wordnet")), None)


def candidates(word: str, part_of_speech: str | None = None, *, offline: bool = False) -> list[Candidate]:
    """Words WordNet relates to ``word``, each once with its closest relation; a phrase goes by its head word."""
    found: dict[str, Candidate] = {}
    synsets, whole = _synsets(word, offline)
    chosen = [s for s in synsets if part_of_speech in (None, _part_of_speech(s))] or synsets
    for sense, synset in enumerate(chosen[:_SENSES]):
        for relation, related in _related(synset):
            for lemma in related.lemmas():
                name = lemma.name()
                if not name.isalpha() or not name.islower() or len(name) < 3:
                    continue
                known = found.get(name)
                if known is None or (relation, sense) < (known.relation, known.sense):
                    found[name] = Candidate(name, relation, sense, whole, counts(offline).get(name, 0))
    return list(found.values())


def common_part_of_speech(words: Sequence[str], *, offline: bool = False) -> str | None:
    """The part of speech most of the labels can be, and of several the one they are most often.

    Labels are used alike, so that "positive" beside "negative" is an adjective and not a photograph.
    """
    possible: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for word in words:
        synsets, _ = _synsets(word, offline)
        possible.update({_part_of_speech(synset) for synset in synsets})
        for synset in synsets:
            used[_part_of_speech(synset)] += sum(lemma.count() for lemma in synset.lemmas())
    return max(possible, key=lambda part: (possible[part], used[part]), default=None)


def _synsets(word: str, offline: bool) -> tuple[list[Any], bool]:
    """All senses of a word or phrase, else those of a phrase's head word; and whether it was the whole."""
    reader, words = wordnet(offline), word.strip().lower().split()
    whole = list(reader.synsets("_".join(words)))
    if whole or len(words) == 1:
        return whole, True
    return list(reader.synsets(words[-1])), False


def _part_of_speech(synset: Any) -> str:
    """WordNet files some adjectives ("satellites") under a letter of their own."""
    return str(synset.pos()).replace("s", "a")


def _related(synset: Any) -> Iterator[tuple[int, Any]]:
    yield SAME, synset
    for other in synset.similar_tos() + synset.also_sees():
        yield NEAR, other
    for other in synset.hypernyms():
        yield BROADER, other


@lru_cache(maxsize=1)
def counts(offline: bool = False) -> dict[str, int]:
    """How often each lemma stands in the texts WordNet's makers tagged: a measure of how common it is."""
    path = nltk_folder("wordnet", offline=offline) / "corpora" / "wordnet" / "cntlist.rev"
    result: dict[str, int] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        lemma = key.partition("%")[0]
        result[lemma] = result.get(lemma, 0) + int(count)
    return result


def same_root(first: str, second: str) -> bool:
    """Whether two words are forms of one: inflected, derived, or one inside the other.

    >>> same_root("sports", "sporting"), same_root("sports", "athletics")
    (True, False)
    """
    from nltk.stem import PorterStemmer

    stem = PorterStemmer().stem
    one, two = first.casefold(), second.casefold()
    shared = len(one) >= 4 and len(two) >= 4 and (one[:5] == two[:5])
    inside = min(len(one), len(two)) >= 4 and (one in two or two in one)
    return stem(one) == stem(two) or inside or shared


def unigrams(offline: bool = False) -> list[str]:
    """Common English words: single lemmas of 3 to 10 letters that WordNet's texts hold ten times or more."""
    return sorted(
        word
        for word, count in counts(offline).items()
        if count >= 10 and 3 <= len(word) <= 10 and word.isascii() and word.isalpha() and word.islower()
    )
