"""A searchable corpus: its sentences, their vectors, and the encoder that made them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from zicl._util.cache import BoundedCache
from zicl._util.files import read_json
from zicl._util.random import stable_hash
from zicl._util.registry import did_you_mean
from zicl.corpus.store import Corpus, Sentence, check_files
from zicl.corpus.subset import CorpusSubset
from zicl.exceptions import (
    ConfigError,
    CorpusDamagedError,
    EmptyCorpusError,
    EncoderMismatchError,
    IndexMissingError,
    StorageError,
)
from zicl.inputs.pair import Text
from zicl.retrieve import search
from zicl.retrieve.builder import FOLDER, MANIFEST, ROWS, VECTORS
from zicl.retrieve.encoder import Encoder, load_encoder
from zicl.retrieve.kinds import load_array, read_vectors
from zicl.retrieve.manifest import read_index_manifest
from zicl.retrieve.search import SearchParams

T = TypeVar("T")
# Most retrievals need no more than these nearest vectors.
FIRST_FETCH = 64
CACHED_QUERIES = 65_536


class Hit(NamedTuple):
    """A row of the corpus and its cosine similarity to the query."""

    row: int
    similarity: float


class Searchable(Protocol):
    """What retrievers search: one index, or several as one. Rows are the sentences of the corpus, by number."""

    @property
    def encoder(self) -> Encoder:
        """The encoder that made the vectors."""
        ...

    def embed(self, text: Text) -> NDArray[np.float32]:
        """Return the vector of one text."""
        ...

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Yield the indexed rows by decreasing similarity; take as many as you need."""
        ...

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """Return all indexed rows, or those of one domain: every distinct sentence once."""
        ...

    def sentence(self, row: int) -> Sentence:
        """Return a row's text, document and domain."""
        ...

    def neighbour(self, row: int) -> int | None:
        """Return the row before it in its paragraph, else the one after it, else None."""
        ...

    def previous(self, row: int) -> int | None:
        """Return the row before it in its domain, also across paragraphs and documents."""
        ...

    def around(self, row: int, reach: int) -> list[int]:
        """Return the other rows of its paragraph that are at most ``reach`` away."""
        ...

    def documents_like(self, text: str) -> set[int]:
        """Return the documents with this text, and the first one with this sentence."""
        ...

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached value of ``key``, computing it the first time."""
        ...


class NoNeighbours:
    """The answers of an index whose texts are not in paragraphs."""

    def neighbour(self, row: int) -> int | None:
        """Return None: there are no paragraphs."""
        return None

    def previous(self, row: int) -> int | None:
        """Return None: the order of the texts means nothing."""
        return None

    def around(self, row: int, reach: int) -> list[int]:
        """Return nothing: there are no paragraphs."""
        return []


class Index:
    """A corpus folder, or a subset of it, opened for search. Queries are embedded one at a time and cached.

    Deep copies return the index itself.
    """

    def __init__(
        self,
        corpus: Corpus,
        manifest: dict[str, Any],
        encoder: Encoder | None,
        *,
        offline: bool = False,
        parent: Index | None = None,
    ) -> None:
        self.corpus, self.manifest, self._given_encoder, self._offline = corpus, manifest, encoder, offline
        # The index that this one is a subset of: they share vectors, encoder and embedded queries.
        self._parent = parent
        self._remote: search.RemoteSearch | None = None
        queries = BoundedCache[Text, NDArray[np.float32]](CACHED_QUERIES)
        self._queries: BoundedCache[Text, NDArray[np.float32]] = parent._queries if parent else queries
        self._first_hits = BoundedCache[Text, list[tuple[int, float]]](CACHED_QUERIES)
        self._computed = BoundedCache[Hashable, Any](CACHED_QUERIES)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        offline: bool = False,
        verify: bool | None = None,
    ) -> Index:
        """Open a corpus that has an index; ``encoder``, if given, must be the one it was built with."""
        corpus = Corpus.open(path, verify=verify)
        manifest = read_index_manifest(corpus.path)
        check_files(corpus.path / FOLDER, manifest["files"], verify=verify)
        if manifest["corpus"] != corpus.text_hash:
            raise IndexMissingError(f"the index of {path} belongs to other text", hint=f"zicl index build {path}")
        if encoder is not None:
            _check_encoder(encoder, manifest)
        return cls(corpus, manifest, encoder, offline=offline)

    def __deepcopy__(self, memo: dict[int, object]) -> Index:
        return self

    def only(self, part: CorpusSubset) -> Index:
        """Return a subset of this index, with the same vectors and encoder and a separate cache of results."""
        return Index(self.corpus.only(part), self.manifest, self._given_encoder, offline=self._offline, parent=self)

    def with_remote_search(self, remote: search.RemoteSearch) -> Index:
        """Return the same index, searched by other processes."""
        index = Index(self.corpus, self.manifest, self._given_encoder, offline=self._offline)
        index._remote = remote
        return index

    @property
    def identity(self) -> str:
        """A hash of the text, the vectors, and the search parameters if they were tuned."""
        kind, encoder = self.manifest["kind"], self.manifest["encoder"]["identity"]
        tuned = [str(self._search_params)] if "search" in self.manifest else []
        return f"{stable_hash(self.corpus.hash, encoder, kind, *tuned):032x}"

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that made the vectors, loaded on first use."""
        if self._parent is not None:
            return self._parent.encoder
        if self._given_encoder is not None:
            return self._given_encoder
        encoder = load_encoder(self.manifest["encoder"]["name"], offline=self._offline)
        _check_encoder(encoder, self.manifest)
        return encoder

    @cached_property
    def _vectors(self) -> Any:
        if self._parent is not None:
            return self._parent._vectors
        if self._remote is not None:
            return self._remote
        found = read_vectors(self.manifest["kind"], self._file(VECTORS))
        expected = self.manifest["vectors"], self.manifest["encoder"]["dimension"]
        if (found.ntotal, found.d) != expected:
            raise self._damaged(f"it has {found.ntotal:,} vectors of {found.d} numbers, and not {expected}")
        return found

    @cached_property
    def _search_params(self) -> SearchParams:
        return SearchParams.from_manifest(self.manifest)

    @cached_property
    def _embedded_rows(self) -> NDArray[np.int64]:
        """The row that each vector was computed from."""
        rows = load_array(self._file(ROWS), (self.manifest["vectors"],), np.int64)
        if rows.min() < 0 or rows.max() >= len(self.corpus):
            raise self._damaged("a vector is of a row that the corpus does not have")
        return rows

    def _damaged(self, reason: str) -> CorpusDamagedError:
        return CorpusDamagedError(
            f"the index of {self.corpus.path} is damaged: {reason}", hint=f"zicl index build {self.corpus.path}"
        )

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """The row that each vector represents, -1 for one that is left out.

        A duplicate in use takes the place of an embedded row that is left out.
        """
        embedded, corpus = self._embedded_rows, self.corpus
        if corpus.subset.is_everything:
            return embedded
        rows = corpus.replacements.replace_rows(embedded, corpus.used)
        # An index that was built after a removal was made from such duplicates, which may be left out in their turn.
        lost = np.flatnonzero((rows < 0) & ~corpus.table["indexed"].to_numpy()[embedded])
        for place, digest in zip(lost.tolist(), corpus.text_hashes(embedded[lost]).tolist(), strict=True):
            row = corpus.replacements.row_of(digest)
            rows[place] = -1 if row is None else row
        return rows

    def replaced_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the embedded rows that were replaced by duplicates, and these duplicates."""
        places = np.flatnonzero((self._rows >= 0) & (self._rows != self._embedded_rows))
        return self._embedded_rows[places], self._rows[places]

    def vector_ids(self) -> NDArray[np.int64]:
        """Return the id of the vector of each indexed row, in the order of the rows."""
        ids = np.flatnonzero(self._rows >= 0)
        return ids[np.argsort(self._rows[ids])]

    def _file(self, name: str) -> Path:
        """Return the path of an index file, after checking that the index was not replaced since it was opened."""
        folder = self.corpus.path / FOLDER
        if not (folder / MANIFEST).is_file() or read_json(folder / MANIFEST) != self.manifest:
            raise StorageError(f"{self.corpus.path} was changed since it was opened", hint="open it again")
        return folder / name

    @cached_property
    def _selection(self) -> search.RowSelection | None:
        return None if self.corpus.subset.is_everything else search.RowSelection.of(self._rows >= 0)

    def embed(self, text: Text) -> NDArray[np.float32]:
        """Return the vector of one text, encoded alone: a batch would change its last digits."""
        return self._queries.get_or_compute(text, lambda: self.encoder.encode([str(text)])[0])

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Yield the indexed rows by decreasing similarity, fetched in growing batches; the first one is cached."""
        fetch, seen = FIRST_FETCH, set[int]()
        count = len(self._rows) if self._selection is None else self._selection.count
        while True:
            for row, similarity in self._search(text, fetch):
                if row not in seen:
                    seen.add(row)
                    yield Hit(row, similarity)
            if fetch >= count:
                return
            fetch *= 4

    def _search(self, text: Text, fetch: int) -> list[tuple[int, float]]:
        if fetch == FIRST_FETCH:
            return self._first_hits.get_or_compute(text, lambda: self._search_vectors(text, fetch))
        return self._search_vectors(text, fetch)

    def _search_vectors(self, text: Text, fetch: int) -> list[tuple[int, float]]:
        query = self.embed(text)
        ids, similarities = search.search(self._vectors, query, fetch, self._selection, self._search_params)
        rows = self._rows[ids]
        # Ties go by row, and a duplicate in another row's place has its number out of order.
        order = np.lexsort((rows, -similarities))
        return list(zip(rows[order].tolist(), similarities[order].tolist(), strict=True))

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """Return all indexed rows, or those of one domain."""
        if domain is not None:
            return self.corpus.domain_rows(domain)
        return self._rows if self.corpus.subset.is_everything else self.corpus.indexed

    def sentence(self, row: int) -> Sentence:
        """Return a row's text, document and domain."""
        return self.corpus.sentence(row)

    def neighbour(self, row: int) -> int | None:
        """Return the row before it in its paragraph, else the one after it, else None."""
        return self.corpus.neighbour(row)

    def previous(self, row: int) -> int | None:
        """Return the row before it in its domain; the last row precedes the first."""
        return self.corpus.previous(row)

    def around(self, row: int, reach: int) -> list[int]:
        """Return the other rows of its paragraph that are at most ``reach`` away."""
        return self.corpus.around(row, reach)

    def documents_like(self, text: str) -> set[int]:
        """Return the documents with this text, and the first one with this sentence."""
        return self.corpus.documents_like(text)

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached value of ``key``, computing it the first time."""
        value: T = self._computed.get_or_compute(key, compute)
        return value

    @property
    def cached_texts(self) -> int:
        """About how many texts have cached results."""
        return max(len(self._queries), len(self._computed))

    def clear_cache(self) -> None:
        """Free the memory of cached results."""
        for cache in (self._queries, self._first_hits, self._computed):
            cache.clear()


def _check_encoder(encoder: Encoder, manifest: dict[str, Any]) -> None:
    built = manifest["encoder"]
    if encoder.identity != built["identity"]:
        raise EncoderMismatchError(
            f"the index was built with the encoder {built['name']} ({built['identity'][:12]}), "
            f"not with {encoder.name} ({encoder.identity[:12]})",
            hint="leave out the encoder to use the index's, or build the index again: zicl index build",
        )


def subset(index: Index, *, share: float = 1.0, without: Sequence[str] = (), seed: int = 0) -> Index:
    """Restrict an index to a share of each domain's paragraphs, without some domains; nothing is embedded again.

    Rows keep their numbers. A smaller share is contained in a larger one with the same seed.
    ``subset(index, share=0.1, without=["imdb"])``
    """
    before = index.corpus.subset
    if before.share < 1:
        raise ConfigError("this index is a sample already", hint="take the share of the index that was opened")
    for name in without:
        if name not in index.corpus.domains:
            raise did_you_mean("domain", name, index.corpus.domains)
    left_out = tuple(dict.fromkeys([*before.without, *without]))
    part = CorpusSubset(left_out, share, seed if share < 1 else 0)
    if part == before:
        return index
    smaller = index.only(part)
    if not smaller.corpus.sentences:
        raise EmptyCorpusError(
            f"without {', '.join(left_out)} no sentence of {index.corpus.path} is left", hint="leave out fewer domains"
        )
    return smaller
