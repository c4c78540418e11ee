"""A searchable corpus: its sentences, their vectors, and the encoder they were made with."""

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
    CorpusVersionError,
    EmptyCorpusError,
    EncoderMismatchError,
    IndexMissingError,
    StorageError,
)
from zicl.inputs.pair import Text
from zicl.retrieve import kinds as vectors
from zicl.retrieve import search
from zicl.retrieve.builder import COMPRESSED_FORMAT, FOLDER, FORMAT, MANIFEST, ROWS, VECTORS
from zicl.retrieve.encoder import Encoder, load_encoder
from zicl.retrieve.search import SearchParams

T = TypeVar("T")
FIRST_FETCH = 64
CACHED_QUERIES = 65_536


class Hit(NamedTuple):
    """A row of the corpus and its cosine similarity to the query."""

    row: int
    similarity: float


class Searchable(Protocol):
    """What the retrieval methods ask of an index (one corpus, or several as one)."""

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what ``compute`` gave for ``key``: what was retrieved once is not searched again."""
        ...

    @property
    def encoder(self) -> Encoder:
        """The encoder the vectors were made with."""
        ...

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Indexed rows by falling similarity, as many as are asked for."""
        ...

    def sentence(self, row: int) -> Sentence:
        """A row with all that is known of it."""
        ...

    def neighbour(self, row: int) -> int | None:
        """The row beside it in its paragraph."""
        ...

    def embed(self, text: Text) -> NDArray[np.float32]:
        """The vector of one text."""
        ...

    def around(self, row: int, reach: int) -> list[int]:
        """The rows of its paragraph at most ``reach`` away, without itself."""
        ...

    def documents_like(self, text: str) -> set[int]:
        """Documents whose whole text this is, or in which it stands as a sentence."""
        ...

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """All indexed rows, or those of one domain."""
        ...


class Index:
    """A corpus folder, or a part of it, opened for search. Queries are encoded one at a time, and remembered.

    A handle: deep copies are the index itself.
    """

    def __init__(
        self,
        corpus: Corpus,
        manifest: dict[str, Any],
        encoder: Encoder | None,
        *,
        offline: bool = False,
        larger: Index | None = None,
    ) -> None:
        self.corpus, self.manifest, self._given, self._offline = corpus, manifest, encoder, offline
        self._larger = larger
        self._elsewhere: search.RemoteSearch | None = None
        queries = BoundedCache[Text, NDArray[np.float32]](CACHED_QUERIES)
        self._queries: BoundedCache[Text, NDArray[np.float32]] = larger._queries if larger else queries
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
        """Open a corpus that has an index; with ``encoder``, it must be the one it was built with."""
        corpus = Corpus.open(path, verify=verify)
        folder = corpus.path / FOLDER
        if not (folder / MANIFEST).is_file():
            raise IndexMissingError(f"{path} has text but no index", hint=f"zicl index build {path}")
        manifest = read_json(folder / MANIFEST)
        if manifest["format"] not in (FORMAT, COMPRESSED_FORMAT):
            raise CorpusVersionError(
                f"the index of {path} has format {manifest['format']}; this version of zicl reads formats {FORMAT} "
                f"and {COMPRESSED_FORMAT}",
                hint=f"zicl index build {path}",
            )
        check_files(folder, manifest["files"], verify=verify)
        if manifest["corpus"] != corpus.text_hash:
            raise IndexMissingError(f"the index of {path} belongs to other text", hint=f"zicl index build {path}")
        if encoder is not None:
            _check_encoder(encoder, manifest)
        return cls(corpus, manifest, encoder, offline=offline)

    def __deepcopy__(self, memo: dict[int, object]) -> Index:
        return self

    def only(self, part: CorpusSubset) -> Index:
        """A part of this index: the same vectors and encoder, and a memory of its own for what is found in it."""
        return Index(self.corpus.only(part), self.manifest, self._given, offline=self._offline, larger=self)

    def searched_by(self, elsewhere: search.RemoteSearch) -> Index:
        """The same index, searched by other processes."""
        index = Index(self.corpus, self.manifest, self._given, offline=self._offline)
        index._elsewhere = elsewhere
        return index

    @property
    def identity(self) -> str:
        """Identifies text and vectors, and how far a search looks if that was picked."""
        kind, encoder = self.manifest["kind"], self.manifest["encoder"]["identity"]
        picked = [str(self._effort)] if "search" in self.manifest else []
        return f"{stable_hash(self.corpus.hash, encoder, kind, *picked):032x}"

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder the vectors were made with, loaded on first use."""
        if self._larger is not None:
            return self._larger.encoder
        if self._given is not None:
            return self._given
        encoder = load_encoder(self.manifest["encoder"]["name"], offline=self._offline)
        _check_encoder(encoder, self.manifest)
        return encoder

    @cached_property
    def _vectors(self) -> Any:
        if self._larger is not None:
            return self._larger._vectors
        return self._elsewhere or vectors.read(self.manifest["kind"], self._file(VECTORS))

    @cached_property
    def _effort(self) -> SearchParams:
        return SearchParams.of(self.manifest)

    @cached_property
    def _embedded(self) -> NDArray[np.int64]:
        """The row whose text each vector was made of."""
        rows: NDArray[np.int64] = np.load(self._file(ROWS), mmap_mode="r")
        return rows

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """The row that each vector stands for, -1 for one that is left out."""
        rows, corpus = self._embedded, self.corpus
        if corpus.part.whole:
            return rows
        standing = corpus.stand_ins.standing(rows, corpus.used)
        # An index that was built after a removal has rows in the place of others, which may be left out in their turn.
        lost = np.flatnonzero((standing < 0) & ~corpus.table["indexed"].to_numpy()[rows])
        for place, digest in zip(lost.tolist(), corpus.text_hashes(rows[lost]).tolist(), strict=True):
            row = corpus.stand_ins.row_of(digest)
            standing[place] = -1 if row is None else row
        return standing

    def moved(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows that vectors were made of, and those that they stand for instead."""
        places = np.flatnonzero((self._rows >= 0) & (self._rows != self._embedded))
        return self._embedded[places], self._rows[places]

    def _file(self, name: str) -> Path:
        """A file of the index, which must still be the one it was opened with."""
        folder = self.corpus.path / FOLDER
        if not (folder / MANIFEST).is_file() or read_json(folder / MANIFEST) != self.manifest:
            raise StorageError(f"{self.corpus.path} was changed since it was opened", hint="open it again")
        return folder / name

    @cached_property
    def _selection(self) -> search.RowSelection | None:
        return None if self.corpus.part.whole else search.RowSelection.of(self._rows >= 0)

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what ``compute`` gave for ``key``: what was retrieved once is not searched again."""
        value: T = self._computed.get_or_compute(key, compute)
        return value

    def embed(self, text: Text) -> NDArray[np.float32]:
        """Return the vector of one text, encoded alone so that not even its last digit depends on other texts."""
        return self._queries.get_or_compute(text, lambda: self.encoder.encode([str(text)])[0])

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Indexed rows by falling similarity, fetched in growing pieces; the first piece is remembered."""
        fetch, given = FIRST_FETCH, set[int]()
        count = len(self._rows) if self._selection is None else self._selection.count
        while True:
            for row, similarity in self._search(text, fetch):
                if row not in given:
                    given.add(row)
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
        numbers, similarities = search.search(self._vectors, query, fetch, self._selection, self._effort)
        rows = self._rows[numbers]
        # A row that replaces a removed duplicate may be elsewhere than its vector: equal similarities go by row.
        order = np.lexsort((rows, -similarities))
        return list(zip(rows[order].tolist(), similarities[order].tolist(), strict=True))

    def sentence(self, row: int) -> Sentence:
        """A row with all that is known of it."""
        return self.corpus.sentence(row)

    def neighbour(self, row: int) -> int | None:
        """The row beside it in its paragraph."""
        return self.corpus.neighbour(row)

    def around(self, row: int, reach: int) -> list[int]:
        """The rows of its paragraph at most ``reach`` away, without itself."""
        return self.corpus.around(row, reach)

    def documents_like(self, text: str) -> set[int]:
        """Documents whose whole text this is, or in which it stands as a sentence."""
        return self.corpus.documents_like(text)

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """All indexed rows, or those of one domain."""
        if domain is not None:
            return self.corpus.domain_rows(domain)
        return self._rows if self.corpus.part.whole else self.corpus.indexed

    def numbers(self) -> NDArray[np.int64]:
        """The number of the vector of each indexed row, in the rows' order."""
        found = np.flatnonzero(self._rows >= 0)
        return found[np.argsort(self._rows[found])]

    @property
    def cached_texts(self) -> int:
        """About how many texts have cached results."""
        return max(len(self._queries), len(self._computed))

    def clear_cache(self) -> None:
        """Free what was cached for texts; results stay the same."""
        for cache in (self._queries, self._first_hits, self._computed):
            cache.clear()


def _check_encoder(encoder: Encoder, manifest: dict[str, Any]) -> None:
    built = manifest["encoder"]
    if encoder.identity != built["identity"]:
        raise EncoderMismatchError(
            f"the index was built with the encoder {built['name']} ({built['identity'][:12]}), "
            f"but was asked with {encoder.name} ({encoder.identity[:12]})",
            hint="leave the encoder out to use the index's own, or build the index again: zicl index build",
        )


# -- A part of an index to search in: a share of its paragraphs, or all but some domains; nothing is embedded again.


def subset(index: Index, *, share: float = 1.0, without: Sequence[str] = (), seed: int = 0) -> Index:
    """The index restricted to a share of each domain's paragraphs, without some domains; rows keep their numbers.

    A smaller share is contained in a larger one with the same seed. ``subset(index, share=0.1, without=["imdb"])``
    """
    before = index.corpus.part
    if before.share < 1:
        raise ConfigError("this index is a sample already", hint="take the share of the whole index")
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
