"""Indexes larger than memory: short codes in lists to find candidates, and the vectors on disk to order them by.

The codes are learnt from a sample and added in parts, each a file: a killed build goes on with the next part. All
codes are in memory once, when the parts are put together; the vectors never are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl._util.files import writing
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.exceptions import ConfigError, StorageError

COMPRESSED = ("ivf-sq8", "ivf-pq")
STORED = "stored.npy"
# Candidates a result: 8-bit codes hardly change the order, those of product quantisation do.
_REFINE = {"ivf-sq8": 2, "ivf-pq": 8}
_TRAIN_PER_LIST, _ROUNDS = 40, 10
_PART = 1 << 18
_PQ_DIMENSIONS, _PQ_CENTRES = 8, 256

Take = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Gives vectors by their numbers."""


@dataclass(frozen=True, eq=False)
class CompressedIndex:
    """Lists of codes, and the vectors in half precision; without them, results stay in the order of the codes."""

    lists: Any
    stored: NDArray[np.float16] | None

    @property
    def ntotal(self) -> int:
        """How many vectors there are."""
        return int(self.lists.ntotal)

    @property
    def d(self) -> int:
        """Their dimension."""
        return int(self.lists.d)

    @property
    def refine(self) -> int:
        """How many candidates a result are ordered by their vectors, unless told otherwise."""
        return _REFINE["ivf-pq" if isinstance(self.lists, faiss.IndexIVFPQ) else "ivf-sq8"]

    def reconstruct_batch(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors by their numbers."""
        if self.stored is None:
            raise StorageError("this index holds codes only, no vectors", hint="build it with its vectors")
        return self.stored[numbers].astype(np.float32)

    def similarities(self, query: NDArray[np.float32], numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The similarity of each vector to the query, whichever others are asked for: no matrix product."""
        found: NDArray[np.float32] = np.einsum("ij,j->i", self.reconstruct_batch(numbers), query)
        return found


def store(dimension: int, count: int, parts: Iterable[NDArray[np.float32]], path: Path) -> Take:
    """Write vectors in half precision, one after another; returns how they are taken out again."""
    with path.open("wb") as stream:
        about = {"descr": "<f2", "fortran_order": False, "shape": (count, dimension)}
        np.lib.format.write_array_header_2_0(stream, about)
        for part in parts:
            stream.write(np.ascontiguousarray(part, dtype="<f2").tobytes())
    stored = np.load(path, mmap_mode="r")
    return lambda numbers: stored[numbers].astype(np.float32)


def write_compressed(
    kind: str, dimension: int, count: int, take: Take, work: Path, path: Path, report: ProgressReport = silent
) -> None:
    """Write the lists of ``count`` vectors to ``path``; ``work`` keeps the parts of a killed run."""
    work.mkdir(parents=True, exist_ok=True)
    trained = work / "trained.faiss"
    if not trained.exists():
        report("indexing", 0, count, f"{kind}, learning")
        _write(_make(kind, dimension, count, take), trained)
    parts = []
    for start in range(0, count, _PART):
        part = work / f"part-{start:012d}.faiss"
        report("indexing", start, count, kind)
        if not part.exists():
            lists, numbers = faiss.read_index(str(trained)), np.arange(start, min(start + _PART, count))
            lists.add_with_ids(take(numbers), numbers)
            _write(lists, part)
        parts.append(part)
    _write(_joined(trained, parts), path)
    report("indexing", count, count, kind)


def training_size(count: int) -> int:
    """How many vectors the lists are learnt from."""
    return min(count, _lists(count) * _TRAIN_PER_LIST)


def _lists(count: int) -> int:
    return int(4 * math.sqrt(count))


def _make(kind: str, dimension: int, count: int, take: Take) -> Any:
    """Empty lists, learnt from a sample."""
    metric, size = faiss.METRIC_INNER_PRODUCT, training_size(count)
    sample = take(np.sort(rng(0, "compressed training").choice(count, size, replace=False)))
    lists: Any
    cells, quantizer = max(1, min(_lists(count), size // 39)), faiss.IndexFlatIP(dimension)
    if kind == "ivf-pq":
        lists = faiss.IndexIVFPQ(quantizer, dimension, cells, _subvectors(dimension), 8, metric)
        lists.pq.cp.min_points_per_centroid = 1
        # A code book has to be filled, if need be with the same vectors again.
        sample = sample if size >= _PQ_CENTRES else np.resize(sample, (_PQ_CENTRES, dimension))
    else:
        codes = faiss.ScalarQuantizer.QT_8bit
        lists = faiss.IndexIVFScalarQuantizer(quantizer, dimension, cells, codes, metric)
    # FAISS warns on standard error where there are few vectors, which is nothing anyone could change.
    lists.cp.seed, lists.cp.niter, lists.cp.min_points_per_centroid = 1234, _ROUNDS, 1
    lists.train(sample)
    lists.nprobe = max(1, min(cells, int(math.sqrt(cells)) * 2))
    return lists


def _subvectors(dimension: int) -> int:
    """How many bytes a code of product quantisation has: one for eight dimensions, or more where eight do not divide.

    >>> _subvectors(384), _subvectors(100), _subvectors(7)
    (48, 10, 1)
    """
    most = max(1, dimension // _PQ_DIMENSIONS)
    return max(number for number in range(1, most + 1) if dimension % number == 0)


def _joined(trained: Path, parts: list[Path]) -> Any:
    """The lists of all parts. Their sizes are known before, so that no list is moved while it grows."""
    whole: Any = faiss.read_index(str(trained))
    pieces: list[Any] = [faiss.read_index(str(part), faiss.IO_FLAG_MMAP_IFC) for part in parts]
    lists: Any = faiss.InvertedLists
    for cell in range(whole.nlist):
        whole.invlists.resize(cell, sum(piece.invlists.list_size(cell) for piece in pieces))
        whole.invlists.resize(cell, 0)
    for piece in pieces:
        piece.copy_subset_to(whole, lists.SUBSET_TYPE_ID_RANGE, 0, np.iinfo(np.int64).max)
    return whole


def _write(index: Any, path: Path) -> None:
    with writing(path) as temporary:
        faiss.write_index(index, str(temporary))


# -- Kinds of FAISS indexes of unit vectors, and their memory-mapped files: exact, HNSW, IVF and compressed.


Kind = Literal["auto", "flat", "hnsw", "ivf", "ivf-sq8", "ivf-pq"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# What "auto" means goes by the number of vectors, not by the machine's memory: a corpus gets the same kind, and
# so the same neighbours, everywhere. With 384 dimensions a million vectors are 1.4 GiB, and an exact search of
# them takes about as long as encoding the query; the 8-bit codes of four million are as large again, and are held
# in memory while they are built.
_FLAT_UP_TO, _SQ8_UP_TO = 1_000_000, 4_000_000
_HNSW_LINKS, _HNSW_BUILD = 32, 80
_IVF_TRAIN_PER_LIST = 64


def check_kind(kind: str) -> Kind:
    """A kind by its name."""
    for known in KINDS:
        if known == kind:
            return known
    raise ConfigError(f"unknown kind of index {kind!r}", hint=f"expected one of: {', '.join(KINDS)}")


def auto_kind(kind: Kind, count: int) -> str:
    """The kind that ``auto`` stands for.

    >>> auto_kind("auto", 10_000), auto_kind("auto", 2_000_000), auto_kind("auto", 27_000_000), auto_kind("hnsw", 10)
    ('flat', 'ivf-sq8', 'ivf-pq', 'hnsw')
    """
    if check_kind(kind) != "auto":
        return kind
    if count <= _FLAT_UP_TO:
        return "flat"
    return "ivf-sq8" if count <= _SQ8_UP_TO else "ivf-pq"


def make_index(kind: str, dimension: int, count: int, sample: NDArray[np.float32]) -> Any:
    """An empty index for ``count`` vectors; IVF learns its cells from ``sample``."""
    metric = faiss.METRIC_INNER_PRODUCT
    if kind == "hnsw":
        graph = faiss.IndexHNSWFlat(dimension, _HNSW_LINKS, metric)
        graph.hnsw.efConstruction = _HNSW_BUILD
        return graph
    if kind == "ivf":
        cells = max(1, min(int(4 * math.sqrt(count)), len(sample) // 39 or 1))
        lists = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, cells, metric)
        lists.cp.seed = 1234
        lists.train(sample)
        lists.nprobe = max(1, min(cells, int(math.sqrt(cells)) * 2))
        return lists
    return faiss.IndexFlatIP(dimension)


def training_numbers(kind: str, count: int) -> NDArray[np.int64]:
    """Which of ``count`` vectors an index of a kind learns from, in their order."""
    if kind != "ivf":
        return np.empty(0, dtype=np.int64)
    size = min(count, int(4 * math.sqrt(count)) * _IVF_TRAIN_PER_LIST)
    return np.sort(rng(0, "ivf training").choice(count, size, replace=False))


def write(
    kind: str,
    dimension: int,
    parts: Iterable[NDArray[np.float32]],
    sample: NDArray[np.float32],
    count: int,
    path: Path,
) -> None:
    """Build an index from shards of vectors and write it."""
    index = make_index(kind, dimension, count, sample)
    threads = faiss.omp_get_max_threads()
    # Threads that add to an HNSW graph race for its links, and no two graphs would be the same.
    faiss.omp_set_num_threads(1 if kind == "hnsw" else threads)
    try:
        for part in parts:
            index.add(np.ascontiguousarray(part, dtype=np.float32))
    finally:
        faiss.omp_set_num_threads(threads)
    faiss.write_index(index, str(path))


def read(kind: str, path: Path) -> Any:
    """Open an index memory-mapped: its vectors are read when they are searched."""
    index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    if kind in COMPRESSED:
        return CompressedIndex(index, np.load(path.with_name(STORED), mmap_mode="r"))
    return index


def read_back(kind: str, path: Path) -> Any:
    """Open an index to take its vectors out again, by their numbers."""
    index = read(kind, path)
    if isinstance(index, faiss.IndexIVF):
        index.make_direct_map()
    return index
