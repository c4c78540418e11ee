"""Exact search of any index that gives its vectors back, in blocks: what approximate searches are measured against."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl._util.files import read_json, storage_errors, write_json
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.exceptions import ConfigError, StorageError
from zicl.retrieve import kinds as compressed
from zicl.retrieve import kinds as vectors
from zicl.retrieve.builder import FOLDER, MANIFEST, VECTORS
from zicl.retrieve.index import FIRST_FETCH, Index
from zicl.retrieve.kinds import COMPRESSED, STORED, CompressedIndex
from zicl.retrieve.search import RowSelection, SearchParams, search

_EXACT_BLOCK = 1 << 16


def exact_search(
    index: Any, queries: NDArray[np.float32], count: int, numbers: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Numbers and similarities of the nearest of each query, among ``numbers`` or all; equal ones by number."""
    among = np.arange(index.ntotal) if numbers is None else numbers
    best = np.empty((len(queries), 0), dtype=np.int64)
    similarities = np.empty((len(queries), 0), dtype=np.float32)
    for start in range(0, len(among), _EXACT_BLOCK):
        block = among[start : start + _EXACT_BLOCK]
        kept = min(count, len(block))
        near, places = faiss.knn(queries, index.reconstruct_batch(block), kept, metric=faiss.METRIC_INNER_PRODUCT)
        best, similarities = np.hstack([best, block[places]]), np.hstack([similarities, near])
        order = np.lexsort((best, -similarities), axis=1)[:, :count]
        best, similarities = np.take_along_axis(best, order, 1), np.take_along_axis(similarities, order, 1)
    return best, similarities


# -- What a search finds, takes and needs, in a process of its own that holds nothing but the index.


RECALL_AT = 16
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, eq=False)
class TuningQueries:
    """Vectors of the index itself as queries, what an exact search finds for them, and how many are fetched at once.

    The vector asked with is not counted as found. More than sixteen are right where some are equally near.
    """

    queries: NDArray[np.float32]
    own: NDArray[np.int64]
    truth: Sequence[NDArray[np.int64]]
    fetch: int
    chosen: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of a process: its own, and pages of files it has mapped, which the system may take back at any time."""

    anonymous: int | None
    mapped: int | None

    @classmethod
    def now(cls) -> MemoryUse:
        """What this process holds; known on Linux only."""
        if not _STATUS.exists():
            return cls(None, None)
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
        return cls(*(int(lines[name].split()[0]) << 10 for name in ("RssAnon", "RssFile")))


@dataclass(frozen=True)
class SearchMeasurement:
    """One way to search: recall at 16, the median time of a query, and the memory of the process afterwards."""

    kind: str
    effort: SearchParams
    recall: float
    milliseconds: float
    memory: MemoryUse


def measure(kind: str, path: Path, questions: TuningQueries, enough: float) -> list[SearchMeasurement]:
    """Search the index in the file ``path`` with growing effort, until the recall is ``enough``."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure_here, kind, path, questions, enough).result()


def measure_here(kind: str, path: Path, questions: TuningQueries, enough: float) -> list[SearchMeasurement]:
    """The same in this process."""
    index = vectors.read(kind, path)
    only = None if questions.chosen is None else RowSelection.of(questions.chosen)

    def one(effort: SearchParams) -> SearchMeasurement:
        def ask(number: int) -> NDArray[np.int64]:
            return search(index, questions.queries[number], questions.fetch, only, effort)[0]

        recall, milliseconds = run_queries(ask, questions)
        return SearchMeasurement(kind, effort, recall, milliseconds, MemoryUse.now())

    lists = getattr(index.lists if isinstance(index, CompressedIndex) else index, "nlist", 0)
    return [found for efforts in parameter_grid(kind, lists) for found in _steps(efforts, one, enough)]


def run_queries(ask: Callable[[int], NDArray[np.int64]], questions: TuningQueries) -> tuple[float, float]:
    """Recall and median milliseconds of one query after another; asked twice, and timed when pages are warm."""
    hits, seconds = [], []
    for number, (own, truth) in enumerate(zip(questions.own, questions.truth, strict=True)):
        found = ask(number)
        right = set(found[found != own][:RECALL_AT].tolist()) & set(truth.tolist())
        hits.append(len(right) / min(RECALL_AT, len(truth)))
    for number in range(len(questions.queries)):
        begun = time.perf_counter()
        ask(number)
        seconds.append(time.perf_counter() - begun)
    return float(np.mean(hits)), float(np.median(seconds)) * 1000


def parameter_grid(kind: str, lists: int) -> list[list[SearchParams]]:
    """The efforts to try, in rows of growing ones.

    >>> [[str(effort) for effort in row] for row in parameter_grid("ivf", 20)]
    [['nprobe=4', 'nprobe=8', 'nprobe=16', 'nprobe=20']]
    """
    if kind == "hnsw":
        return [[SearchParams(ef=1 << power) for power in range(6, 12)]]
    if lists == 0:
        return [[SearchParams()]]
    probes = [*(1 << power for power in range(2, 13) if 1 << power < lists), lists]
    factors: Sequence[int | None] = {"ivf-sq8": (1, 2), "ivf-pq": (2, 4, 8, 16)}.get(kind, (None,))
    return [[SearchParams(nprobe=probe, refine=factor) for probe in probes] for factor in factors]


def _steps(
    efforts: Iterable[SearchParams], one: Callable[[SearchParams], SearchMeasurement], enough: float
) -> list[SearchMeasurement]:
    """Measure until one is good enough: what looks further is slower."""
    found: list[SearchMeasurement] = []
    for effort in efforts:
        found.append(one(effort))
        if found[-1].recall >= enough:
            break
    return found


# -- Which effort a search of an index needs: measured against exact search with the corpus's own sentences, and kept.


_BLOCK = 1 << 16
# Sentences may be equally near, to the last digits: any of them is a right answer.
_TIES, _EQUAL = 128, 1e-6


@dataclass(frozen=True)
class Tuning:
    """What was measured, and the fastest way to search the index as it is that reaches the target."""

    kind: str
    vectors: int
    queries: int
    target: float
    measured: list[SearchMeasurement]

    @property
    def pick(self) -> SearchMeasurement | None:
        """The fastest of the index's own kind over the target, if any is."""
        return _fastest([each for each in self.measured if each.kind == self.kind], self.target)

    @property
    def better(self) -> SearchMeasurement | None:
        """The fastest over the target, where it is of another kind."""
        best = _fastest(self.measured, self.target)
        return best if best is not None and best.kind != self.kind else None


def tune(
    path: str | Path,
    *,
    target: float = 0.95,
    kinds: Sequence[str] = (),
    queries: int = 200,
    seed: int = 0,
    report: ProgressReport = silent,
) -> Tuning:
    """Measure the index of a corpus, and other ``kinds`` built for the purpose; the pick is kept in its manifest."""
    if not 0 < target <= 1:
        raise ConfigError(f"a recall of {target} cannot be reached", hint="between 0 and 1, such as 0.95")
    if queries < 1:
        raise ConfigError(f"{queries} queries tell nothing", hint="at least 1, such as 200")
    index = Index.open(path)
    own, others = (
        index.manifest["kind"],
        [vectors.auto_kind(vectors.check_kind(kind), len(index.indexed())) for kind in kinds],
    )
    whole = vectors.read_back(own, index.corpus.path / FOLDER / VECTORS)
    report("searching exactly", 0, None, f"{whole.ntotal:,} vectors")
    questions = _questions(index, whole, queries, seed)
    report("measuring", 0, None, own)
    found = measure(own, index.corpus.path / FOLDER / VECTORS, questions, target)
    for kind in dict.fromkeys(other for other in others if other != own):
        report(f"measuring {kind}", 0, None, "built for the purpose")
        with storage_errors(index.corpus.path), TemporaryDirectory(dir=index.corpus.path, prefix=".tune-") as scratch:
            _build(kind, whole, Path(scratch))
            found += measure(kind, Path(scratch) / VECTORS, questions, target)
    tuning = Tuning(own, int(whole.ntotal), len(questions.queries), target, found)
    if tuning.pick is not None:
        _keep(index, tuning.pick)
    return tuning


def _questions(index: Index, whole: Any, queries: int, seed: int) -> TuningQueries:
    """A sample of the vectors that are in use, and the nearest others of each."""
    used = np.sort(index.numbers())
    if len(used) < 2:
        raise ConfigError("one vector has no neighbours to be found", hint="an index with more sentences")
    own = np.sort(rng(seed, "tune").choice(used, min(queries, len(used)), replace=False))
    asked = whole.reconstruct_batch(own)
    truth = [
        _neighbours(near[near != number], similarities[near != number])
        for number, near, similarities in zip(own, *exact_search(whole, asked, _TIES, used), strict=True)
    ]
    chosen = None if index.corpus.part.whole else np.isin(np.arange(whole.ntotal), used)
    return TuningQueries(asked, own, truth, FIRST_FETCH, chosen)


def _neighbours(near: NDArray[np.int64], similarities: NDArray[np.float32]) -> NDArray[np.int64]:
    """The first sixteen, and those that are as near as the last of them."""
    last = similarities[:RECALL_AT][-1]
    right: NDArray[np.int64] = near[similarities >= last - _EQUAL]
    return right


def _build(kind: str, whole: Any, folder: Path) -> None:
    """An index of another kind of the same vectors."""
    count, dimension, take = int(whole.ntotal), int(whole.d), whole.reconstruct_batch
    parts = (take(np.arange(start, min(start + _BLOCK, count))) for start in range(0, count, _BLOCK))
    if kind in COMPRESSED:
        stored = compressed.store(dimension, count, parts, folder / STORED)
        compressed.write_compressed(kind, dimension, count, stored, folder / "work", folder / VECTORS)
        return
    wanted = vectors.training_numbers(kind, count)
    sample = take(wanted) if len(wanted) else np.empty((0, dimension), dtype=np.float32)
    vectors.write(kind, dimension, parts, sample, count, folder / VECTORS)


def _keep(index: Index, pick: SearchMeasurement) -> None:
    """Write the pick into the manifest; searches of the index use it from now on."""
    path = index.corpus.path / FOLDER / MANIFEST
    if read_json(path) != index.manifest:
        raise StorageError(f"{index.corpus.path} was changed by another process meanwhile", hint="run it again")
    kept = pick.effort.kept(index.manifest)
    if kept != index.manifest:
        write_json(path, kept)


def _fastest(measured: Sequence[SearchMeasurement], target: float) -> SearchMeasurement | None:
    return min((each for each in measured if each.recall >= target), key=lambda each: each.milliseconds, default=None)
