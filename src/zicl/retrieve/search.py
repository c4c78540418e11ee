"""How far a search looks; what is not given is the index's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl.retrieve.kinds import CompressedIndex


@dataclass(frozen=True)
class SearchParams:
    """``nprobe``: lists (ivf kinds). ``refine``: candidates a result (re-ranked kinds). ``ef``: candidates (hnsw)."""

    nprobe: int | None = None
    refine: int | None = None
    ef: int | None = None

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> SearchParams:
        """What was picked for an index, if anything was."""
        return cls(**manifest.get("search", {}))

    def kept(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """A manifest with this effort as the picked one; it stays as it is where nothing is given."""
        rest = {name: value for name, value in manifest.items() if name != "search"}
        return {**rest, "search": self.given()} if self.given() else rest

    def given(self) -> dict[str, int]:
        """What is given, by name.

        >>> SearchParams(nprobe=8).given()
        {'nprobe': 8}
        """
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.given().items())


DEFAULT_PARAMS = SearchParams()


# -- Searching an index: one query at a time, among all its vectors or some, as far as an effort says.


SearchHits = tuple[NDArray[np.int64], NDArray[np.float32]]
_HNSW_SEARCH = 128
# Where fewer of an HNSW graph's vectors are wanted, comparing them all is quicker than walking among the others.
_GRAPH_FROM = 0.1
# FAISS's own type annotations do not know its search parameters and selectors.
_FAISS: Any = faiss


@dataclass(frozen=True, eq=False)
class RowSelection:
    """The vectors that a search is confined to: those of a range, or those whose number is marked."""

    selector: Any
    count: int
    bits: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, chosen: NDArray[np.bool_]) -> RowSelection:
        """The vectors whose number is marked."""
        bits = np.packbits(chosen, bitorder="little")
        return cls(_FAISS.IDSelectorBitmap(bits), int(chosen.sum()), bits)

    @classmethod
    def between(cls, first: int, last: int) -> RowSelection:
        """The vectors from one number up to another."""
        return cls(_FAISS.IDSelectorRange(first, last), last - first)


@runtime_checkable
class RemoteSearch(Protocol):
    """Vectors that other processes search."""

    def nearest(
        self, query: NDArray[np.float32], count: int, only: RowSelection | None, effort: SearchParams
    ) -> SearchHits:
        """The same as ``search``."""
        ...


def search(
    index: Any,
    query: NDArray[np.float32],
    count: int,
    only: RowSelection | None = None,
    effort: SearchParams = DEFAULT_PARAMS,
) -> SearchHits:
    """The ``count`` nearest, by falling similarity, equal ones by number: one query at a time.

    FAISS takes another path for many queries at once, whose last digits differ; a result must not
    depend on what else is asked.
    """
    if isinstance(index, CompressedIndex):
        return _search_compressed(index, query, count, only, effort)
    if isinstance(index, RemoteSearch):
        return index.nearest(query, count, only, effort)
    if only is not None:
        return _search_only(index, query, min(count, only.count), only, effort)
    count, options = min(count, index.ntotal), None
    if isinstance(index, faiss.IndexHNSWFlat):
        options = _FAISS.SearchParametersHNSW(efSearch=max(effort.ef or _HNSW_SEARCH, count))
    elif isinstance(index, faiss.IndexIVF):
        options = _FAISS.SearchParametersIVF(nprobe=_cells(index, count / max(1, index.ntotal), effort))
    return _sorted(index, query, count, options)


def _search_only(
    index: Any, query: NDArray[np.float32], count: int, only: RowSelection, effort: SearchParams
) -> SearchHits:
    """The same among some vectors; where an approximate search finds too few of them, it looks further."""
    if isinstance(index, faiss.IndexHNSWFlat):
        share = only.count / index.ntotal
        if share >= _GRAPH_FROM:
            # Most of what the graph leads to may be left out: as many more are looked at.
            wide = math.ceil(max(effort.ef or _HNSW_SEARCH, count) / share)
            options = _FAISS.SearchParametersHNSW(efSearch=wide, sel=only.selector)
            found = _sorted(index, query, count, options)
            if len(found[0]) == count:
                return found
        index = faiss.downcast_index(index.storage)
    if isinstance(index, faiss.IndexIVF):
        return _search_lists(index, query, count, count, _cells(index, count / max(1, only.count), effort), only)
    return _sorted(index, query, count, _FAISS.SearchParameters(sel=only.selector))


def _search_compressed(
    index: CompressedIndex, query: NDArray[np.float32], count: int, only: RowSelection | None, effort: SearchParams
) -> SearchHits:
    """Candidates by their codes, ordered by their vectors."""
    every = index.ntotal if only is None else only.count
    count, refine = min(count, every), effort.refine or index.refine
    wide = count if index.stored is None else min(every, refine * count)
    cells = _cells(index.lists, count / max(1, every), effort)
    found = _search_lists(index.lists, query, wide, count, cells, only)
    if index.stored is None:
        return found
    numbers = np.sort(found[0])
    similarities = index.similarities(query, numbers)
    order = np.lexsort((numbers, -similarities))[:count]
    return numbers[order], similarities[order]


def _search_lists(
    index: Any, query: NDArray[np.float32], count: int, enough: int, cells: int, only: RowSelection | None
) -> SearchHits:
    """``count`` by the lists' codes; where they hold too few, more of them are looked through."""
    selector = {} if only is None else {"sel": only.selector}
    while True:
        found = _sorted(index, query, count, _FAISS.SearchParametersIVF(nprobe=cells, **selector))
        if len(found[0]) >= enough or cells == index.nlist:
            return found
        cells = min(index.nlist, 4 * cells)


def _cells(index: Any, share: float, effort: SearchParams) -> int:
    """How many cells are searched: more than usual where more is asked for than a few of them hold."""
    lists = int(index.nlist)
    return min(lists, max(effort.nprobe or int(index.nprobe), math.ceil(4 * share * lists)))


def _sorted(index: Any, query: NDArray[np.float32], count: int, options: Any) -> SearchHits:
    similarities, numbers = index.search(query.reshape(1, -1), count, params=options)
    found = numbers[0] >= 0
    order = np.lexsort((numbers[0][found], -similarities[0][found]))
    return numbers[0][found][order], similarities[0][found][order]


def merge_hits(found: Sequence[SearchHits], count: int) -> SearchHits:
    """The nearest of several shares of the vectors, as one search of them all would have found them."""
    numbers = np.concatenate([numbers for numbers, _ in found])
    similarities = np.concatenate([similarities for _, similarities in found])
    order = np.lexsort((numbers, -similarities))[:count]
    return numbers[order], similarities[order]
