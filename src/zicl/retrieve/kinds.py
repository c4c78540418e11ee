"""Kinds of FAISS indexes of unit vectors, and their memory-mapped files: exact, HNSW, IVF and compressed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.exceptions import ConfigError
from zicl.retrieve.compressed import COMPRESSED, STORED, Compressed

Kind = Literal["auto", "flat", "hnsw", "ivf", "ivf-sq8", "ivf-pq"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# What "auto" means goes by the number of vectors, not by the machine's memory: a corpus gets the same kind, and
# so the same neighbours, everywhere. With 384 dimensions a million vectors are 1.4 GiB, and an exact search of
# them takes about as long as encoding the query; the 8-bit codes of four million are as large again, and are held
# in memory while they are built.
_FLAT_UP_TO, _SQ8_UP_TO = 1_000_000, 4_000_000
_HNSW_LINKS, _HNSW_BUILD = 32, 80
_IVF_TRAIN_PER_LIST = 64


def named(kind: str) -> Kind:
    """A kind by its name."""
    for known in KINDS:
        if known == kind:
            return known
    raise ConfigError(f"unknown kind of index {kind!r}", hint=f"expected one of: {', '.join(KINDS)}")


def choose(kind: Kind, count: int) -> str:
    """The kind that ``auto`` stands for.

    >>> choose("auto", 10_000), choose("auto", 2_000_000), choose("auto", 27_000_000), choose("hnsw", 10)
    ('flat', 'ivf-sq8', 'ivf-pq', 'hnsw')
    """
    if named(kind) != "auto":
        return kind
    if count <= _FLAT_UP_TO:
        return "flat"
    return "ivf-sq8" if count <= _SQ8_UP_TO else "ivf-pq"


def make(kind: str, dimension: int, count: int, sample: NDArray[np.float32]) -> Any:
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
    index = make(kind, dimension, count, sample)
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
        return Compressed(index, np.load(path.with_name(STORED), mmap_mode="r"))
    return index


def read_back(kind: str, path: Path) -> Any:
    """Open an index to take its vectors out again, by their numbers."""
    index = read(kind, path)
    if isinstance(index, faiss.IndexIVF):
        index.make_direct_map()
    return index
