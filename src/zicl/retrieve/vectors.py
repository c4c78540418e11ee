"""FAISS indexes of unit vectors: exact for small corpora, HNSW or IVF for larger ones, memory-mapped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl.exceptions import ConfigError

Kind = Literal["auto", "flat", "hnsw", "ivf"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Exact search of this many vectors of 384 dimensions takes about as long as encoding the query.
_FLAT_UP_TO = 1_000_000
_HNSW_LINKS, _HNSW_BUILD, _HNSW_SEARCH = 32, 80, 128
_IVF_TRAIN_PER_LIST = 64
# Where fewer of an HNSW graph's vectors are wanted, comparing them all is quicker than walking among the others.
_GRAPH_FROM = 0.1
# FAISS's own type annotations do not know its search parameters and selectors.
_FAISS: Any = faiss


def named(kind: str) -> Kind:
    """A kind by its name."""
    for known in KINDS:
        if known == kind:
            return known
    raise ConfigError(f"unknown kind of index {kind!r}", hint=f"expected one of: {', '.join(KINDS)}")


def choose(kind: Kind, count: int) -> str:
    """The kind that ``auto`` stands for.

    >>> choose("auto", 10_000), choose("auto", 5_000_000), choose("hnsw", 10)
    ('flat', 'ivf', 'hnsw')
    """
    if named(kind) != "auto":
        return kind
    return "flat" if count <= _FLAT_UP_TO else "ivf"


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


def training_size(count: int) -> int:
    """How many vectors IVF learns from."""
    return min(count, int(4 * math.sqrt(count)) * _IVF_TRAIN_PER_LIST)


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


def read(path: Path) -> Any:
    """Open an index memory-mapped: its vectors are read when they are searched."""
    return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)


def read_back(path: Path) -> Any:
    """Open an index to take its vectors out again, by their numbers."""
    index = read(path)
    if isinstance(index, faiss.IndexIVF):
        index.make_direct_map()
    return index


@dataclass(frozen=True, eq=False)
class Selection:
    """The vectors that a search is confined to."""

    selector: Any
    count: int

    @classmethod
    def of(cls, chosen: NDArray[np.bool_]) -> Selection:
        """The vectors whose number is marked."""
        return cls(_FAISS.IDSelectorBitmap(np.packbits(chosen, bitorder="little")), int(chosen.sum()))


def search(
    index: Any, query: NDArray[np.float32], count: int, only: Selection | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ``count`` nearest, by falling similarity, equal ones by number: one query at a time.

    FAISS takes another path for many queries at once, whose last digits differ; a result must not
    depend on what else is asked.
    """
    if only is not None:
        return _search_only(index, query, min(count, only.count), only)
    count, options = min(count, index.ntotal), None
    if isinstance(index, faiss.IndexHNSWFlat):
        options = _FAISS.SearchParametersHNSW(efSearch=max(_HNSW_SEARCH, count))
    elif isinstance(index, faiss.IndexIVF):
        options = _FAISS.SearchParametersIVF(nprobe=_cells(index, count / max(1, index.ntotal)))
    return _sorted(index, query, count, options)


def _search_only(
    index: Any, query: NDArray[np.float32], count: int, only: Selection
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The same among some vectors; where an approximate search finds too few of them, it looks further."""
    if isinstance(index, faiss.IndexHNSWFlat):
        share = only.count / index.ntotal
        if share >= _GRAPH_FROM:
            # Most of what the graph leads to may be left out: as many more are looked at.
            wide = math.ceil(max(_HNSW_SEARCH, count) / share)
            options = _FAISS.SearchParametersHNSW(efSearch=wide, sel=only.selector)
            found = _sorted(index, query, count, options)
            if len(found[0]) == count:
                return found
        index = faiss.downcast_index(index.storage)
    if isinstance(index, faiss.IndexIVF):
        cells = _cells(index, count / max(1, only.count))
        while True:
            options = _FAISS.SearchParametersIVF(nprobe=cells, sel=only.selector)
            found = _sorted(index, query, count, options)
            if len(found[0]) == count or cells == index.nlist:
                return found
            cells = min(index.nlist, 4 * cells)
    return _sorted(index, query, count, _FAISS.SearchParameters(sel=only.selector))


def _cells(index: Any, share: float) -> int:
    """How many cells are searched: more than usual where more is asked for than a few of them hold."""
    lists = int(index.nlist)
    return min(lists, max(int(index.nprobe), math.ceil(4 * share * lists)))


def _sorted(
    index: Any, query: NDArray[np.float32], count: int, options: Any
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    similarities, numbers = index.search(query.reshape(1, -1), count, params=options)
    found = numbers[0] >= 0
    order = np.lexsort((numbers[0][found], -similarities[0][found]))
    return numbers[0][found][order], similarities[0][found][order]
