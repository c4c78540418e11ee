"""A search of a share of an index' vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl.apps.cluster.paths import IndexPlace
from zicl.apps.cluster.same import check_versions, decisive
from zicl.exceptions import ClusterError
from zicl.retrieve import kinds as vectors
from zicl.retrieve.builder import FOLDER, VECTORS
from zicl.retrieve.effort import Effort
from zicl.retrieve.index import Index
from zicl.retrieve.search import Found, Selection, search

# A query, how many are wanted, the marks of those that may be found (None: all), and how far to look.
Asked = tuple[NDArray[np.float32], int, NDArray[np.uint8] | None, Effort]


@dataclass(frozen=True)
class SameVectors:
    """Reads an index' vectors on another machine, which must have the very same index and versions."""

    path: str
    identity: str
    versions: Mapping[str, str] = field(default_factory=decisive)

    @classmethod
    def of(cls, index: Index) -> SameVectors:
        """Those of an index that is open here."""
        return cls(IndexPlace.of(index).path, index.identity)

    def __call__(self) -> Any:
        """The vectors, mapped."""
        check_versions(self.versions)
        # Nothing is encoded here.
        index = Index.open(self.path, offline=True)
        if index.identity != self.identity:
            raise ClusterError(
                f"{self.path} is another corpus or index on a machine of the cluster",
                hint="the same files have to be on all of them",
            )
        return vectors.read(index.manifest["kind"], index.corpus.path / FOLDER / VECTORS)


class Searcher:
    """Searches the vectors between two numbers; of a mapped file only their pages are read where its kind allows."""

    def __init__(self, read: Callable[[], Any], first: int, last: int) -> None:
        faiss.omp_set_num_threads(1)
        self._read, self._first, self._last = read, first, last

    @cached_property
    def _index(self) -> Any:
        # With the first search, whose error reaches the command; one of a worker's start would not, in its own words.
        return self._read()

    def search(self, asked: Asked) -> Found:
        """The nearest of its share."""
        query, count, bits, effort = asked
        only = Selection.between(self._first, self._last)
        if bits is not None:
            chosen = np.unpackbits(bits, count=self._index.ntotal, bitorder="little").astype(bool)
            chosen[: self._first] = chosen[self._last :] = False
            only = Selection.of(chosen)
        if only.count == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        return search(self._index, query, count, only, effort)
