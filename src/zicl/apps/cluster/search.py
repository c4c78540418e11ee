"""A search of a share of an index' vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl.apps.cluster.connect import IndexLocation, check_versions, cluster_error, decisive
from zicl.exceptions import ClusterError
from zicl.retrieve import kinds as vectors
from zicl.retrieve.builder import FOLDER, VECTORS
from zicl.retrieve.index import Index
from zicl.retrieve.search import RowSelection, SearchHits, SearchParams, merge_hits, search

# A query, how many are wanted, the marks of those that may be found (None: all), and how far to look.
SearchRequest = tuple[NDArray[np.float32], int, NDArray[np.uint8] | None, SearchParams]


@dataclass(frozen=True)
class SameVectors:
    """Reads an index' vectors on another machine, which must have the very same index and versions."""

    path: str
    identity: str
    versions: Mapping[str, str] = field(default_factory=decisive)

    @classmethod
    def of(cls, index: Index) -> SameVectors:
        """Those of an index that is open here."""
        return cls(IndexLocation.of(index).path, index.identity)

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

    def search(self, asked: SearchRequest) -> SearchHits:
        """The nearest of its share."""
        query, count, bits, effort = asked
        only = RowSelection.between(self._first, self._last)
        if bits is not None:
            chosen = np.unpackbits(bits, count=self._index.ntotal, bitorder="little").astype(bool)
            chosen[: self._first] = chosen[self._last :] = False
            only = RowSelection.of(chosen)
        if only.count == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        return search(self._index, query, count, only, effort)


# -- An index searched by several workers, each in its share of the vectors, and their answers merged.


# A searcher that died is started again elsewhere; for so long a search waits for it.
_SECONDS = 600.0


class Searchers:
    """The workers that search an index together."""

    def __init__(self, workers: Sequence[Any]) -> None:
        self._workers = workers

    def nearest(
        self, query: NDArray[np.float32], count: int, only: RowSelection | None, effort: SearchParams
    ) -> SearchHits:
        """The nearest of all shares."""
        if only is not None and only.bits is None:
            raise ClusterError("a search elsewhere is confined by marks, not by a range")
        import ray
        from ray.exceptions import RayError

        asked = ray.put((query, count, None if only is None else only.bits, effort))
        try:
            found = ray.get([worker.search.remote(asked) for worker in self._workers], timeout=_SECONDS)
        except RayError as error:
            raise cluster_error(error) from error
        return merge_hits(found, count)


def searchers(index: Index, count: int) -> Searchers:
    """Start so many workers on an index, whose file all machines see; Ray replaces one that dies.

    They ask for no core of their own: while they search, those that asked them wait.
    """
    import ray

    count = min(count, index.manifest["vectors"])
    bounds = np.linspace(0, index.manifest["vectors"], count + 1).astype(int).tolist()
    actor: Any = ray.remote(Searcher).options(
        num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
    )
    read = SameVectors.of(index)
    return Searchers([actor.remote(read, first, last) for first, last in pairwise(bounds)])
