"""Candidate synonyms and common English words from WordNet."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from zicl._util.catalog import nltk_folder

# How WordNet relates a candidate to the label, the most direct first: same synset, similar synset, hypernym, hyponym.
SAME, NEAR, BROADER, NARROWER = 0, 1, 2, 3
_MAX_SENSES = 6


@dataclass(frozen=True)
class Candidate:
    """A possible synonym of a label.

    ``sense`` is the share of the label's uses that have the sense it came from, ``full_phrase`` whether it replaces the
    full phrase and not only its head word, ``count`` how often WordNet's tagged texts hold it.
    """

    word: str
    relation: int
    sense: float
    full_phrase: bool
    count: int


@lru_cache(maxsize=1)
def wordnet(offline: bool = False) -> Any:
    """Return NLTK's reader of the catalog's WordNet."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader
    from nltk.data import FileSystemPathPointer

    folder = nltk_folder("wordnet", offline=offline)
    with warnings.catch_warnings():
        # It warns that other languages are missing.
        warnings.simplefilter("ignore", UserWarning)
        return WordNetCorpusReader(FileSystemPathPointer(str(folder / "corpora" / "wordnet")), None)


def candidates(word: str, part_of_speech: str | None = None, *, offline: bool = False) -> list[Candidate]:
    """Return words related to ``word``, each with its closest relation; unknown phrases go by their head word."""
    result: dict[str, Candidate] = {}
    synsets, full_phrase = _synsets(word, offline)
    chosen = [s for s in synsets if part_of_speech in (None, _part_of_speech(s))] or synsets
    for synset, sense in zip(chosen[:_MAX_SENSES], _sense_shares(word, chosen, full_phrase), strict=False):
        for relation, related in _related(synset):
            for lemma in related.lemmas():
                name = lemma.name()
                if not name.isalpha() or not name.islower() or len(name) < 3:
                    continue
                known = result.get(name)
                if known is None or relation < known.relation:
                    result[name] = Candidate(name, relation, sense, full_phrase, counts(offline).get(name, 0))
    return list(result.values())


def _sense_shares(word: str, synsets: Sequence[Any], full_phrase: bool) -> list[float]:
    """Return the share of each sense in the uses of a word in WordNet's tagged texts, each counted half a time more."""
    words = word.strip().lower().split()
    name = "_".join(words) if full_phrase else words[-1]
    uses = [0.5 + sum(x.count() for x in synset.lemmas() if x.name().lower() == name) for synset in synsets]
    return [count / sum(uses) for count in uses]


def common_part_of_speech(words: Sequence[str], *, offline: bool = False) -> str | None:
    """Return the part of speech that most labels can have; ties go to the one they have most often.

    Labels share a part of speech: "positive" beside "negative" is an adjective, not a photograph.
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
    """Return the senses of a phrase, else of its head word, and whether they are those of the full phrase."""
    reader, words = wordnet(offline), word.strip().lower().split()
    synsets = list(reader.synsets("_".join(words)))
    if synsets or len(words) == 1:
        return synsets, True
    return list(reader.synsets(words[-1])), False


def _part_of_speech(synset: Any) -> str:
    """Return the part of speech; satellite adjectives ("s") count as adjectives ("a")."""
    return str(synset.pos()).replace("s", "a")


def _related(synset: Any) -> Iterator[tuple[int, Any]]:
    yield SAME, synset
    for other in synset.similar_tos() + synset.also_sees():
        yield NEAR, other
    for other in synset.hypernyms():
        yield BROADER, other
    for other in synset.hyponyms():
        yield NARROWER, other


@lru_cache(maxsize=1)
def counts(offline: bool = False) -> dict[str, int]:
    """Return how often each lemma occurs in WordNet's sense-tagged texts."""
    path = nltk_folder("wordnet", offline=offline) / "corpora" / "wordnet" / "cntlist.rev"
    result: dict[str, int] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        lemma = key.partition("%")[0]
        result[lemma] = result.get(lemma, 0) + int(count)
    return result


def same_root(first: str, second: str) -> bool:
    """Return whether two words are forms of the same word: inflected, derived, or one contained in the other.

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
    """Return common English words: lemmas of 3 to 10 letters that occur ten times or more in WordNet's texts."""
    return sorted(
        word
        for word, count in counts(offline).items()
        if count >= 10 and 3 <= len(word) <= 10 and word.isascii() and word.isalpha() and word.islower()
    )
