"""Search two indexes as one: a corpus, and texts that were added to it in memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zicl._util.cache import BoundedCache
from zicl.corpus.store import Sentence
from zicl.inputs.pair import Text
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import CACHED_QUERIES, Hit, Index

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ConcatIndex:
    """Two indexes as one: the rows and documents of ``other`` follow those of ``base``. Nothing is written."""

    base: Index
    other: Index
    _computed: BoundedCache[Hashable, Any] = field(default_factory=lambda: BoundedCache(CACHED_QUERIES))

    def __deepcopy__(self, memo: dict[int, object]) -> ConcatIndex:
        return self

    @property
    def encoder(self) -> Encoder:
        """The encoder that both were built with."""
        return self.base.encoder

    def _locate(self, row: int) -> tuple[Index, int]:
        """Return the index that a row belongs to, and the number of rows before that index."""
        rows = len(self.base.corpus)
        return (self.base, 0) if row < rows else (self.other, rows)

    def embed(self, text: Text) -> NDArray[np.float32]:
        """Return the vector of one text."""
        return self.base.embed(text)

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Yield the indexed rows of both by decreasing similarity."""
        shift = len(self.base.corpus)
        others = (Hit(hit.row + shift, hit.similarity) for hit in self.other.nearest(text))
        return heapq.merge(self.base.nearest(text), others, key=lambda hit: -hit.similarity)

    def sentence(self, row: int) -> Sentence:
        """Return a row's text, document and domain."""
        index, before = self._locate(row)
        sentence = index.sentence(row - before)
        documents = self.base.corpus.document_ids if before else 0
        return replace(sentence, row=row, document=sentence.document + documents)

    def neighbour(self, row: int) -> int | None:
        """Return the row before it in its paragraph, else the one after it."""
        index, before = self._locate(row)
        neighbour = index.neighbour(row - before)
        return None if neighbour is None else neighbour + before

    def previous(self, row: int) -> int | None:
        """Return the row before it in its domain; the two indexes stay apart."""
        index, before = self._locate(row)
        found = index.previous(row - before)
        return None if found is None else found + before

    def around(self, row: int, reach: int) -> list[int]:
        """Return the other rows of its paragraph that are at most ``reach`` away."""
        index, before = self._locate(row)
        return [other + before for other in index.around(row - before, reach)]

    def documents_like(self, text: str) -> set[int]:
        """Return the documents with this text, and the first one with this sentence."""
        shift = self.base.corpus.document_ids
        return self.base.documents_like(text) | {d + shift for d in self.other.documents_like(text)}

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """Return all indexed rows, or those of one domain."""
        parts = []
        for index, shift in ((self.base, 0), (self.other, len(self.base.corpus))):
            if domain is None or domain in index.corpus.domains:
                parts.append(index.indexed(domain) + shift)
        return np.concatenate(parts)

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached value of ``key``, computing it the first time."""
        value: T = self._computed.get_or_compute(key, compute)
        return value

    @property
    def cached_texts(self) -> int:
        """About how many texts have cached results."""
        return max(len(self._computed), self.base.cached_texts, self.other.cached_texts)

    def clear_cache(self) -> None:
        """Free the memory of cached results."""
        self._computed.clear()
        self.base.clear_cache()
        self.other.clear_cache()
