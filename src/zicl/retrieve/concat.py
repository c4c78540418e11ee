"""Two searchable corpora as one: a corpus, and texts that joined it in memory."""

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
    """Rows and documents of ``other`` follow those of ``base``. Neither folder is written to."""

    base: Index
    other: Index
    _computed: BoundedCache[Hashable, Any] = field(default_factory=lambda: BoundedCache(CACHED_QUERIES))

    def __deepcopy__(self, memo: dict[int, object]) -> ConcatIndex:
        return self

    @property
    def encoder(self) -> Encoder:
        """The encoder both were made with."""
        return self.base.encoder

    def _part(self, row: int) -> tuple[Index, int, int]:
        """The index a row belongs to, the row there, and the number of documents before it."""
        if row < len(self.base.corpus):
            return self.base, row, 0
        return self.other, row - len(self.base.corpus), self.base.corpus.document_ids

    def embed(self, text: Text) -> NDArray[np.float32]:
        """The vector of one text."""
        return self.base.embed(text)

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Indexed rows of both by falling similarity."""
        shift = len(self.base.corpus)
        others = (Hit(hit.row + shift, hit.similarity) for hit in self.other.nearest(text))
        return heapq.merge(self.base.nearest(text), others, key=lambda hit: -hit.similarity)

    def sentence(self, row: int) -> Sentence:
        """A row with all that is known of it."""
        index, own, documents = self._part(row)
        sentence = index.sentence(own)
        return replace(sentence, row=row, document=sentence.document + documents)

    def neighbour(self, row: int) -> int | None:
        """The row beside it in its paragraph."""
        index, own, _ = self._part(row)
        found = index.neighbour(own)
        return None if found is None else found + row - own

    def around(self, row: int, reach: int) -> list[int]:
        """The rows of its paragraph at most ``reach`` away, without itself."""
        index, own, _ = self._part(row)
        return [found + row - own for found in index.around(own, reach)]

    def documents_like(self, text: str) -> set[int]:
        """Documents whose whole text this is, or in which it stands as a sentence."""
        shift = self.base.corpus.document_ids
        return self.base.documents_like(text) | {d + shift for d in self.other.documents_like(text)}

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """All indexed rows, or those of one domain."""
        parts = []
        for index, shift in ((self.base, 0), (self.other, len(self.base.corpus))):
            if domain is None or domain in index.corpus.domains:
                parts.append(index.indexed(domain) + shift)
        return np.concatenate(parts)

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what ``compute`` gave for ``key``: what was retrieved once is not searched again."""
        value: T = self._computed.get_or_compute(key, compute)
        return value

    @property
    def cached_texts(self) -> int:
        """About how many texts have cached results."""
        return max(len(self._computed), self.base.cached_texts, self.other.cached_texts)

    def clear_cache(self) -> None:
        """Free what was cached for texts; results stay the same."""
        self._computed.clear()
        self.base.clear_cache()
        self.other.clear_cache()
