"""Plant paraphrases of texts in a corpus, in memory, so that something very near is found for each of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zicl._util.cache import BoundedCache
from zicl._util.random import rng
from zicl.corpus.store import Sentence
from zicl.inputs.pair import Text, text_key
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import CACHED_QUERIES, Hit, Index

T = TypeVar("T")
# The probability that a word is left out, and that it changes places with the next one.
DROPPED, SWAPPED = 0.15, 0.15


def paraphrase(text: Text, seed: int = 0) -> str:
    """Return a text without some of its words and with some neighbouring words swapped; a text of one word is doubled.

    >>> paraphrase("The bread here is worth the walk at four in the morning.")
    'bread The here is worth the four walk in the'
    """
    words, generator = str(text).split(), rng(seed, text_key(text), "paraphrase")
    kept = [word for word in words if generator.random() >= DROPPED]
    place = 0
    while place < len(kept) - 1:
        if generator.random() < SWAPPED:
            kept[place : place + 2] = kept[place + 1], kept[place]
            # A word is moved once.
            place += 1
        place += 1
    if kept and kept != words:
        return " ".join(kept)
    # A text is never its own demonstration: something has to differ.
    return " ".join(words[:-1] if len(words) > 1 else words * 2)


def plant(index: Index, texts: Sequence[Text]) -> PlantedIndex:
    """Return the index with a paraphrase of each text, whose physical neighbour is a random sentence of the corpus."""
    rows, made = index.indexed(), tuple(map(paraphrase, texts))
    beside = [int(rows[int(rng(0, text_key(text), "beside").integers(len(rows)))]) for text in texts]
    return PlantedIndex(index, made, tuple(beside), index.encoder.encode(made))


@dataclass(frozen=True, eq=False)
class PlantedIndex:
    """An index and planted sentences, whose rows follow; ``beside`` has the row of each one's neighbour."""

    base: Index
    planted: tuple[str, ...]
    beside: tuple[int, ...]
    vectors: NDArray[np.float32]
    _computed: BoundedCache[Hashable, Any] = field(default_factory=lambda: BoundedCache(CACHED_QUERIES))

    @property
    def encoder(self) -> Encoder:
        """The encoder of the corpus."""
        return self.base.encoder

    @property
    def _first(self) -> int:
        return len(self.base.corpus)

    def embed(self, text: Text) -> NDArray[np.float32]:
        """Return the vector of one text."""
        return self.base.embed(text)

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Yield corpus rows and planted ones by decreasing similarity."""
        similarities = self.vectors @ self.embed(text)
        order = np.argsort(-similarities, kind="stable").tolist()
        planted = (Hit(self._first + number, float(similarities[number])) for number in order)
        return heapq.merge(self.base.nearest(text), planted, key=lambda hit: -hit.similarity)

    def sentence(self, row: int) -> Sentence:
        """Return a row; a planted sentence is a document of its own."""
        number = row - self._first
        if number < 0:
            return self.base.sentence(row)
        return Sentence(row, self.planted[number], self.base.corpus.document_ids + number, 0, "planted", "planted")

    def neighbour(self, row: int) -> int | None:
        """Return the neighbour of a row in its paragraph; a planted one has the sentence it was put beside."""
        return self.base.neighbour(row) if row < self._first else self.beside[row - self._first]

    def previous(self, row: int) -> int | None:
        """Return the row before it in its domain; before a planted one is the sentence it was put beside."""
        return self.base.previous(row) if row < self._first else self.beside[row - self._first]

    def around(self, row: int, reach: int) -> list[int]:
        """Return the other rows of its paragraph that are at most ``reach`` away."""
        return self.base.around(row, reach) if row < self._first else [self.beside[row - self._first]]

    def documents_like(self, text: str) -> set[int]:
        """Return the documents of the corpus with this text, and the first one with this sentence."""
        return self.base.documents_like(text)

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """Return all rows to search, or those of one domain; planted ones have a domain of their own."""
        planted = np.arange(self._first, self._first + len(self.planted))
        if domain is not None:
            return planted if domain == "planted" else self.base.indexed(domain)
        return np.concatenate([self.base.indexed(), planted])

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached value of ``key``, computing it the first time."""
        value: T = self._computed.get_or_compute(key, compute)
        return value
