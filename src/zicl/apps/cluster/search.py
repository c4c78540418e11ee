"""Search an index with several workers, each in its part of the vectors, and merge their hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl.apps.cluster.connect import cluster_error
from zicl.apps.cluster.worker import IndexLocation, check_versions, local_versions
from zicl.exceptions import ClusterError
from zicl.retrieve import kinds
from zicl.retrieve.builder import FOLDER, VECTORS
from zicl.retrieve.index import Index
from zicl.retrieve.search import RowSelection, SearchHits, SearchParams, merge_hits, search

# A query, the number of hits, the bitmap of allowed rows (None: all), and the search parameters.
SearchRequest = tuple[NDArray[np.float32], int, NDArray[np.uint8] | None, SearchParams]
# Ray restarts a searcher that died on another machine; a search waits this many seconds for it.
_TIMEOUT = 600.0


@dataclass(frozen=True)
class VerifiedVectors:
    """Read an index's vectors on another machine, after checking that it has the same index and versions."""

    path: str
    identity: str
    versions: Mapping[str, str] = field(default_factory=local_versions)

    @classmethod
    def of(cls, index: Index) -> VerifiedVectors:
        """Return a reader of the vectors of an open index."""
        return cls(IndexLocation.of(index).path, index.identity)

    def __call__(self) -> Any:
        """Return the vectors, memory-mapped."""
        check_versions(self.versions)
        # Offline: a searcher encodes nothing.
        index = Index.open(self.path, offline=True)
        if index.identity != self.identity:
            raise ClusterError(
                f"{self.path} is another corpus or index on a machine of the cluster",
                hint="put the same files on all machines",
            )
        return kinds.read_vectors(index.manifest["kind"], index.corpus.path / FOLDER / VECTORS)


class Searcher:
    """Search the rows from ``first`` up to ``last``; of a mapped file only the pages of these rows are read."""

    def __init__(self, read: Callable[[], Any], first: int, last: int) -> None:
        faiss.omp_set_num_threads(1)
        self._read, self._first, self._last = read, first, last

    @cached_property
    def _index(self) -> Any:
        # Read at the first search: Ray reports its errors with their message, unlike those of a worker's start.
        return self._read()

    def search(self, request: SearchRequest) -> SearchHits:
        """Return the nearest rows of this part."""
        query, count, bits, params = request
        only = RowSelection.between(self._first, self._last)
        if bits is not None:
            allowed = np.unpackbits(bits, count=self._index.ntotal, bitorder="little").astype(bool)
            allowed[: self._first] = allowed[self._last :] = False
            only = RowSelection.of(allowed)
        if only.count == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        return search(self._index, query, count, only, params)


class DistributedSearch:
    """Searchers that cover an index together."""

    def __init__(self, workers: Sequence[Any]) -> None:
        self._workers = workers

    def nearest(
        self, query: NDArray[np.float32], count: int, only: RowSelection | None, params: SearchParams
    ) -> SearchHits:
        """Return the nearest rows of all parts."""
        if only is not None and only.bits is None:
            raise ClusterError("a distributed search is restricted by a bitmap of rows, not by a range")
        import ray
        from ray.exceptions import RayError

        request = ray.put((query, count, None if only is None else only.bits, params))
        try:
            hits = ray.get([worker.search.remote(request) for worker in self._workers], timeout=_TIMEOUT)
        except RayError as error:
            raise cluster_error(error) from error
        return merge_hits(hits, count)


def start_searchers(index: Index, count: int) -> DistributedSearch:
    """Start ``count`` searchers of an index whose file all machines see; Ray replaces one that dies.

    They reserve no cores: while they search, the workers that called them wait.
    """
    import ray

    count = min(count, index.manifest["vectors"])
    bounds = np.linspace(0, index.manifest["vectors"], count + 1).astype(int).tolist()
    actor: Any = ray.remote(Searcher).options(
        num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
    )
    read = VerifiedVectors.of(index)
    return DistributedSearch([actor.remote(read, first, last) for first, last in pairwise(bounds)])
