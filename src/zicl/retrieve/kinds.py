"""The kinds of vector index: which one to choose, how it is written, and how it is read back memory-mapped.

  flat      every vector in float32: exact search
  ivf-sq8   8-bit codes in inverted lists find candidates, which are re-ranked by the vectors on disk
  ivf-pq    the same with product quantisation: one byte for eight dimensions

The codes are trained on a sample and added in parts, one file each, so that a killed build resumes with the next part.
All codes are in memory once, when the parts are merged; the vectors never are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl._util.files import atomic_write
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.exceptions import ConfigError, CorpusDamagedError, StorageError, first_line

Kind = Literal["auto", "flat", "ivf-sq8", "ivf-pq"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COMPRESSED = ("ivf-sq8", "ivf-pq")
_CLASSES: dict[str, Any] = {
    "flat": faiss.IndexFlatIP,
    "ivf-sq8": faiss.IndexIVFScalarQuantizer,
    "ivf-pq": faiss.IndexIVFPQ,
}
# The vectors of a compressed index, in half precision.
STORED = "stored.npy"
# "auto" goes by the number of vectors, not by the machine's memory: a corpus gets the same kind, and so the same
# neighbours, everywhere. With 384 dimensions a million vectors take 1.4 GiB, and so do the 8-bit codes of four million,
# which are in memory while they are built.
_FLAT_UP_TO, _SQ8_UP_TO = 1_000_000, 4_000_000
# Candidates per result: 8-bit codes hardly change the order of the vectors, product quantisation does.
_REFINE = {"ivf-sq8": 2, "ivf-pq": 8}
_TRAIN_PER_LIST, _TRAIN_ITERATIONS = 40, 10
# Vectors per part of a compressed index, and bytes that are written at once.
_PART, _PIECE = 1 << 18, 1 << 20
_PQ_DIMENSIONS, _PQ_CENTROIDS = 8, 256

VectorReader = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Returns vectors by their ids."""


def check_kind(kind: str) -> Kind:
    """Return the kind of this name, or raise an error that lists the names."""
    for known in KINDS:
        if known == kind:
            return known
    hint = f"expected one of: {', '.join(KINDS)}"
    if kind in ("ivf", "hnsw"):
        hint = "use ivf-sq8 (approximate, in less memory) or flat (exact) instead"
    raise ConfigError(f"unknown kind of index {kind!r}", hint=hint)


def auto_kind(kind: Kind, count: int) -> str:
    """Return the kind itself, or the one that ``auto`` picks for ``count`` vectors.

    Recall is measured on half a million real sentences (docs/results/indexes.md), not at the sizes that ``ivf-pq`` is
    picked for.

    >>> auto_kind("auto", 10_000), auto_kind("auto", 2_000_000), auto_kind("auto", 27_000_000), auto_kind("ivf-pq", 10)
    ('flat', 'ivf-sq8', 'ivf-pq', 'ivf-pq')
    """
    if check_kind(kind) != "auto":
        return kind
    if count <= _FLAT_UP_TO:
        return "flat"
    return "ivf-sq8" if count <= _SQ8_UP_TO else "ivf-pq"


@dataclass(frozen=True, eq=False)
class CompressedIndex:
    """Codes in inverted lists, and the vectors in half precision; without vectors, results are ranked by the codes."""

    lists: Any
    stored: NDArray[np.float16] | None

    @property
    def ntotal(self) -> int:
        """The number of vectors."""
        return int(self.lists.ntotal)

    @property
    def d(self) -> int:
        """The dimension of the vectors."""
        return int(self.lists.d)

    @property
    def refine(self) -> int:
        """How many candidates per result are re-ranked by default."""
        return _REFINE["ivf-pq" if isinstance(self.lists, faiss.IndexIVFPQ) else "ivf-sq8"]

    def reconstruct_batch(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return vectors by their ids."""
        if self.stored is None:
            raise StorageError("this index holds codes only, no vectors", hint="build it with its vectors")
        return self.stored[ids].astype(np.float32)

    def similarities(self, query: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the similarity of each vector to the query."""
        # Not a matrix product: its last digits would depend on which other vectors are compared.
        result: NDArray[np.float32] = np.einsum("ij,j->i", self.reconstruct_batch(ids), query)
        return result


def read_vectors(kind: str, path: Path) -> Any:
    """Open an index memory-mapped: vectors are read when they are searched. All kinds have ``reconstruct_batch``.

    FAISS reads whatever a file says it is: another class than the kind's, or lists in another file, are errors.
    """
    try:
        # With both flags, lists that are in another file are refused before it is opened.
        index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_ONDISK_SAME_DIR)
    except (RuntimeError, MemoryError, ValueError) as error:
        raise _damaged(path, "FAISS cannot read it") from error
    if type(index) is not _CLASSES[kind] or index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise _damaged(path, f"it is no index of the kind {kind}")
    if kind not in COMPRESSED:
        return index
    lists = faiss.downcast_InvertedLists(index.invlists)
    if type(faiss.downcast_index(index.quantizer)) is not faiss.IndexFlatIP or isinstance(
        lists, faiss.OnDiskInvertedLists
    ):
        raise _damaged(path, "its lists are not in it")
    return CompressedIndex(index, load_array(path.with_name(STORED), (index.ntotal, index.d), np.float16))


def load_array(path: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Open a NumPy file of this shape and type as a memory map."""
    try:
        found = np.load(path, mmap_mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise _damaged(path, first_line(error)) from error
    if not isinstance(found, np.ndarray) or found.shape != shape or found.dtype != dtype:
        raise _damaged(path, f"it does not hold {' × '.join(map(str, shape))} numbers of the type {dtype.__name__}")
    return found


def _damaged(path: Path, reason: str) -> CorpusDamagedError:
    return CorpusDamagedError(
        f"{path} is damaged: {reason}", hint=f"build it again: zicl index build {path.parent.parent}"
    )


def write_vectors(
    kind: str,
    dimension: int,
    count: int,
    parts: Iterable[NDArray[np.float32]],
    path: Path,
    work: Path,
    report: ProgressReport = silent,
) -> None:
    """Write an index of ``count`` vectors, given in parts, to ``path``; ``work`` keeps the codes of a killed run."""
    if kind in COMPRESSED:
        read_vectors = write_half_precision(dimension, count, parts, path.with_name(STORED))
        write_codes(kind, dimension, count, read_vectors, path, work, report)
        return
    index = faiss.IndexFlatIP(dimension)
    for part in parts:
        index.add(np.ascontiguousarray(part, dtype=np.float32))
    _write_faiss(index, path)


def write_half_precision(dimension: int, count: int, parts: Iterable[NDArray[np.float32]], path: Path) -> VectorReader:
    """Write vectors in half precision, part by part; return a function that reads them back."""
    with path.open("wb") as stream:
        header = {"descr": "<f2", "fortran_order": False, "shape": (count, dimension)}
        np.lib.format.write_array_header_2_0(stream, header)
        for part in parts:
            stream.write(np.ascontiguousarray(part, dtype="<f2").tobytes())
    stored = np.load(path, mmap_mode="r")
    return lambda ids: stored[ids].astype(np.float32)


def write_codes(
    kind: str,
    dimension: int,
    count: int,
    read_vectors: VectorReader,
    path: Path,
    work: Path,
    report: ProgressReport = silent,
) -> None:
    """Write the inverted lists of ``count`` vectors to ``path``; ``work`` keeps the parts of a killed run."""
    work.mkdir(parents=True, exist_ok=True)
    trained = work / "trained.faiss"
    if not trained.exists():
        report("indexing", 0, count, f"{kind}, learning")
        _write_faiss(_train(kind, dimension, count, read_vectors), trained)
    parts = []
    for start in range(0, count, _PART):
        part = work / f"part-{start:012d}.faiss"
        report("indexing", start, count, kind)
        if not part.exists():
            lists, ids = faiss.read_index(str(trained)), np.arange(start, min(start + _PART, count))
            lists.add_with_ids(read_vectors(ids), ids)
            _write_faiss(lists, part)
        parts.append(part)
    _write_faiss(_merge(trained, parts), path)
    report("indexing", count, count, kind)


def _train(kind: str, dimension: int, count: int, read_vectors: VectorReader) -> Any:
    """Return empty lists, trained on a sample of the vectors."""
    wanted = int(4 * math.sqrt(count))
    size = min(count, wanted * _TRAIN_PER_LIST)
    sample = read_vectors(np.sort(rng(0, "compressed training").choice(count, size, replace=False)))
    # FAISS expects 39 vectors per list.
    nlist, quantizer, metric = max(1, min(wanted, size // 39)), faiss.IndexFlatIP(dimension), faiss.METRIC_INNER_PRODUCT
    lists: Any
    if kind == "ivf-pq":
        lists = faiss.IndexIVFPQ(quantizer, dimension, nlist, _code_bytes(dimension), 8, metric)
        lists.pq.cp.min_points_per_centroid = 1
        # A codebook has to be filled, if need be with the same vectors again.
        sample = sample if size >= _PQ_CENTROIDS else np.resize(sample, (_PQ_CENTROIDS, dimension))
    else:
        codes = faiss.ScalarQuantizer.QT_8bit
        lists = faiss.IndexIVFScalarQuantizer(quantizer, dimension, nlist, codes, metric)
    # Without the last setting FAISS warns on standard error about few vectors, which a user cannot change.
    lists.cp.seed, lists.cp.niter, lists.cp.min_points_per_centroid = 1234, _TRAIN_ITERATIONS, 1
    lists.train(sample)
    lists.nprobe = max(1, min(nlist, int(math.sqrt(nlist)) * 2))
    return lists


def _code_bytes(dimension: int) -> int:
    """Return the bytes of a product-quantised code: one per eight dimensions, or per more where eight do not divide.

    >>> _code_bytes(384), _code_bytes(100), _code_bytes(7)
    (48, 10, 1)
    """
    most = max(1, dimension // _PQ_DIMENSIONS)
    return max(number for number in range(1, most + 1) if dimension % number == 0)


def _merge(trained: Path, parts: list[Path]) -> Any:
    """Return the lists of all parts as one index."""
    merged: Any = faiss.read_index(str(trained))
    pieces: list[Any] = [faiss.read_index(str(part), faiss.IO_FLAG_MMAP_IFC) for part in parts]
    inverted_lists: Any = faiss.InvertedLists
    # Reserve the final size of each list, so that none is moved in memory while it grows.
    for number in range(merged.nlist):
        merged.invlists.resize(number, sum(piece.invlists.list_size(number) for piece in pieces))
        merged.invlists.resize(number, 0)
    for piece in pieces:
        piece.copy_subset_to(merged, inverted_lists.SUBSET_TYPE_ID_RANGE, 0, np.iinfo(np.int64).max)
    return merged


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write a .npy file. numpy's way with files says nothing of what cannot be written when it closes them."""
    with atomic_write(path) as temporary, temporary.open("wb") as stream:
        np.save(SimpleNamespace(write=stream.write), array, allow_pickle=False)


def _write_faiss(index: Any, path: Path) -> None:
    # By Python's file, because FAISS' own says nothing of what it cannot write when it is closed.
    writer: Any = faiss
    with atomic_write(path) as temporary, temporary.open("wb") as stream:
        faiss.write_index(index, writer.PyCallbackIOWriter(stream.write, _PIECE))
