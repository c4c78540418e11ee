"""Indexes larger than memory: short codes in lists to find candidates, and the vectors on disk to order them by.

The codes are learnt from a sample and added in parts, each a file: a killed build goes on with the next part. All
codes are in memory once, when the parts are put together; the vectors never are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl._util.files import writing
from zicl._util.progress import Report, silent
from zicl._util.random import rng
from zicl.exceptions import StorageError

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
class Compressed:
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


def write(kind: str, dimension: int, count: int, take: Take, work: Path, path: Path, report: Report = silent) -> None:
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
