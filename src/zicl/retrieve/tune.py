"""Tune an index: measure recall, time and memory of its searches, and keep the fastest that reaches a target recall.

Sentences of the corpus are the queries and exact search gives their true neighbours. Each kind of index is measured in
a separate process that holds nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl._util.failures import storage_errors
from zicl._util.files import read_json, write_json
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.exceptions import ConfigError, StorageError
from zicl.retrieve.builder import FOLDER, MANIFEST, VECTORS
from zicl.retrieve.index import FIRST_FETCH, Index
from zicl.retrieve.kinds import CompressedIndex, auto_kind, check_kind, read_vectors, write_vectors
from zicl.retrieve.search import RowSelection, SearchParams, search

RECALL_AT = 16
_BLOCK = 1 << 16
# Sentences may be equally near, up to rounding: any of them is a right answer.
_MOST_TIES, _TIE = 128, 1e-6
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of a process: anonymous memory, and mapped pages of files, which the system may reclaim at any time."""

    anonymous: int | None
    mapped: int | None

    @classmethod
    def now(cls) -> MemoryUse:
        """Return the memory of this process; known on Linux only."""
        if not _STATUS.exists():
            return cls(None, None)
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
        return cls(*(int(lines[name].split()[0]) << 10 for name in ("RssAnon", "RssFile")))


@dataclass(frozen=True)
class SearchMeasurement:
    """Recall at 16 of one kind and setting, its median milliseconds per query, and the memory of the process then."""

    kind: str
    params: SearchParams
    recall: float
    milliseconds: float
    memory: MemoryUse


@dataclass(frozen=True)
class Tuning:
    """All measurements, and the choice that follows from them."""

    kind: str
    vectors: int
    queries: int
    target: float
    measured: list[SearchMeasurement]

    @property
    def pick(self) -> SearchMeasurement | None:
        """The fastest search of the index's kind that reaches the target, if any does."""
        return self._fastest([each for each in self.measured if each.kind == self.kind])

    @property
    def better(self) -> SearchMeasurement | None:
        """The fastest search that reaches the target, if it is of another kind."""
        best = self._fastest(self.measured)
        return best if best is not None and best.kind != self.kind else None

    def _fastest(self, measured: Sequence[SearchMeasurement]) -> SearchMeasurement | None:
        enough = (each for each in measured if each.recall >= self.target)
        return min(enough, key=lambda each: each.milliseconds, default=None)


def tune(
    path: str | Path,
    *,
    target: float = 0.95,
    kinds: Sequence[str] = (),
    queries: int = 200,
    seed: int = 0,
    report: ProgressReport = silent,
) -> Tuning:
    """Measure the index of a corpus, and other ``kinds`` in temporary files; write the pick to the index's manifest."""
    if not 0 < target <= 1:
        raise ConfigError(f"a recall of {target} cannot be reached", hint="between 0 and 1, such as 0.95")
    if queries < 1:
        raise ConfigError(f"nothing can be measured with {queries} queries", hint="at least 1, such as 200")
    index = Index.open(path)
    kind, others = index.manifest["kind"], [auto_kind(check_kind(kind), len(index.indexed())) for kind in kinds]
    vectors = read_vectors(kind, index.corpus.path / FOLDER / VECTORS)
    report("searching exactly", 0, None, f"{vectors.ntotal:,} vectors")
    sample = _sample_queries(index, vectors, queries, seed)
    report("measuring", 0, None, kind)
    measured = measure(kind, index.corpus.path / FOLDER / VECTORS, sample, target)
    for other in dict.fromkeys(other for other in others if other != kind):
        report(f"measuring {other}", 0, None, "in temporary files")
        with storage_errors(index.corpus.path), TemporaryDirectory(dir=index.corpus.path, prefix=".tune-") as folder:
            file, blocks = Path(folder) / VECTORS, (vectors.reconstruct_batch(ids) for ids in _blocks(vectors.ntotal))
            write_vectors(other, vectors.d, vectors.ntotal, blocks, file, Path(folder) / "work")
            measured += measure(other, file, sample, target)
    tuning = Tuning(kind, int(vectors.ntotal), len(sample.queries), target, measured)
    if tuning.pick is not None:
        _write_params(index, tuning.pick.params)
    return tuning


def _write_params(index: Index, params: SearchParams) -> None:
    """Write search parameters to the manifest of an index, where every later search finds them."""
    path = index.corpus.path / FOLDER / MANIFEST
    if read_json(path) != index.manifest:
        raise StorageError(f"{index.corpus.path} was changed by another process meanwhile", hint="run it again")
    manifest = params.add_to(index.manifest)
    if manifest != index.manifest:
        write_json(path, manifest)


@dataclass(frozen=True, eq=False)
class TuningQueries:
    """Queries with their true nearest neighbours, more than 16 of them where some are equally near.

    ``ids`` are the queries' vectors in the index (-1: not in it), which do not count as found. ``fetch`` is the number
    of results per search, ``mask`` marks the vectors to search among (None: all).
    """

    queries: NDArray[np.float32]
    ids: NDArray[np.int64]
    truth: Sequence[NDArray[np.int64]]
    fetch: int
    mask: NDArray[np.bool_] | None = None


def _sample_queries(index: Index, vectors: Any, count: int, seed: int) -> TuningQueries:
    """Sample vectors that are in use, and find the nearest others of each."""
    used = np.sort(index.vector_ids())
    if len(used) < 2:
        raise ConfigError("one vector has no neighbours to find", hint="an index with more sentences")
    ids = np.sort(rng(seed, "tune").choice(used, min(count, len(used)), replace=False))
    queries, truth = vectors.reconstruct_batch(ids), []
    for query_id, nearest, similarities in zip(ids, *exact_search(vectors, queries, _MOST_TIES, used), strict=True):
        others = nearest != query_id
        last = similarities[others][:RECALL_AT][-1]
        truth.append(nearest[others][similarities[others] >= last - _TIE])
    mask = None if index.corpus.subset.is_everything else np.isin(np.arange(vectors.ntotal), used)
    return TuningQueries(queries, ids, truth, FIRST_FETCH, mask)


def exact_search(
    index: Any, queries: NDArray[np.float32], count: int, among: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the ids and similarities of each query's nearest vectors, ties by id; works with any kind of index."""
    among = np.arange(index.ntotal) if among is None else among
    best = np.empty((len(queries), 0), dtype=np.int64)
    similarities = np.empty((len(queries), 0), dtype=np.float32)
    for places in _blocks(len(among)):
        block = among[places]
        near, columns = faiss.knn(
            queries, index.reconstruct_batch(block), min(count, len(block)), metric=faiss.METRIC_INNER_PRODUCT
        )
        best, similarities = np.hstack([best, block[columns]]), np.hstack([similarities, near])
        order = np.lexsort((best, -similarities), axis=1)[:, :count]
        best, similarities = np.take_along_axis(best, order, 1), np.take_along_axis(similarities, order, 1)
    return best, similarities


def _blocks(count: int) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers below ``count`` in blocks whose vectors fit into memory."""
    return (np.arange(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK))


def measure(kind: str, path: Path, queries: TuningQueries, target: float) -> list[SearchMeasurement]:
    """Search the index in the file ``path`` with growing parameters until the target recall is reached."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure_here, kind, path, queries, target).result()


def measure_here(kind: str, path: Path, queries: TuningQueries, target: float) -> list[SearchMeasurement]:
    """Do the same in this process."""
    index = read_vectors(kind, path)
    only = None if queries.mask is None else RowSelection.of(queries.mask)
    nlist = int(index.lists.nlist) if isinstance(index, CompressedIndex) else 0
    measured: list[SearchMeasurement] = []
    for row in parameter_grid(kind, nlist):
        for params in row:

            def find(query: NDArray[np.float32], params: SearchParams = params) -> NDArray[np.int64]:
                return search(index, query, queries.fetch, only, params)[0]

            recall, milliseconds = run_queries(find, queries)
            measured.append(SearchMeasurement(kind, params, recall, milliseconds, MemoryUse.now()))
            # Further parameters of this row only search more, and so are slower.
            if recall >= target:
                break
    return measured


def run_queries(
    find: Callable[[NDArray[np.float32]], NDArray[np.int64]], queries: TuningQueries
) -> tuple[float, float]:
    """Return the recall and the median milliseconds of one query after another, timed when the pages are warm."""
    recalls, seconds = [], []
    for query, query_id, truth in zip(queries.queries, queries.ids, queries.truth, strict=True):
        ids = find(query)
        right = set(ids[ids != query_id][:RECALL_AT].tolist()) & set(truth.tolist())
        recalls.append(len(right) / min(RECALL_AT, len(truth)))
    for query in queries.queries:
        start = time.perf_counter()
        find(query)
        seconds.append(time.perf_counter() - start)
    return float(np.mean(recalls)), float(np.median(seconds)) * 1000


def parameter_grid(kind: str, nlist: int) -> list[list[SearchParams]]:
    """Return the parameters to try, in rows that each search more and more of the ``nlist`` lists.

    >>> [[str(params) for params in row] for row in parameter_grid("ivf-sq8", 5)]
    [['nprobe=4 refine=1', 'nprobe=5 refine=1'], ['nprobe=4 refine=2', 'nprobe=5 refine=2']]
    """
    if kind == "flat":
        return [[SearchParams()]]
    probes = [*(1 << power for power in range(2, 13) if 1 << power < nlist), nlist]
    factors = {"ivf-sq8": (1, 2), "ivf-pq": (2, 4, 8, 16)}[kind]
    return [[SearchParams(nprobe=probe, refine=factor) for probe in probes] for factor in factors]
