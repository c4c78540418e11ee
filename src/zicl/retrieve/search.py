"""Search a vector index: one query at a time, among all its vectors or a selection of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import faiss
import numpy as np
from numpy.typing import NDArray

from zicl.retrieve.kinds import CompressedIndex

SearchHits = tuple[NDArray[np.int64], NDArray[np.float32]]
"""The ids of vectors and their similarities to the query."""

# FAISS's type annotations lack its search parameters and selectors.
_FAISS: Any = faiss


@dataclass(frozen=True)
class SearchParams:
    """How far a compressed index is searched; None is the default of the index.

    ``nprobe`` is the number of lists that are read, ``refine`` the number of candidates per result that are re-ranked.
    """

    nprobe: int | None = None
    refine: int | None = None

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> SearchParams:
        """Return the parameters that were tuned for an index, if it was tuned."""
        return cls(**manifest.get("search", {}))

    def add_to(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return the manifest of an index with these parameters, without an entry if none is set."""
        rest = {name: value for name, value in manifest.items() if name != "search"}
        return {**rest, "search": self.given()} if self.given() else rest

    def given(self) -> dict[str, int]:
        """Return the parameters that are set, by name.

        >>> SearchParams(nprobe=8).given()
        {'nprobe': 8}
        """
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.given().items())


DEFAULT_PARAMS = SearchParams()


@dataclass(frozen=True, eq=False)
class RowSelection:
    """The vectors to search among: a range of ids, or those marked in a mask.

    ``bits`` is the packed mask: FAISS reads it during the search, so it has to be kept.
    """

    selector: Any
    count: int
    bits: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, mask: NDArray[np.bool_]) -> RowSelection:
        """Select the vectors whose ids are marked."""
        bits = np.packbits(mask, bitorder="little")
        return cls(_FAISS.IDSelectorBitmap(bits), int(mask.sum()), bits)

    @classmethod
    def between(cls, first: int, last: int) -> RowSelection:
        """Select the ids from ``first`` up to, not including, ``last``."""
        return cls(_FAISS.IDSelectorRange(first, last), last - first)


@runtime_checkable
class RemoteSearch(Protocol):
    """Vectors that other processes search."""

    def nearest(
        self, query: NDArray[np.float32], count: int, only: RowSelection | None, params: SearchParams
    ) -> SearchHits:
        """Return what ``search`` would."""
        ...


def search(
    index: Any,
    query: NDArray[np.float32],
    count: int,
    only: RowSelection | None = None,
    params: SearchParams = DEFAULT_PARAMS,
) -> SearchHits:
    """Return the ``count`` nearest vectors by decreasing similarity, ties by id.

    Takes one query: FAISS computes batches of queries in another way, whose last digits differ, and a result must not
    depend on what else is searched for.
    """
    if isinstance(index, CompressedIndex):
        return _search_compressed(index, query, count, only, params)
    if isinstance(index, RemoteSearch):
        return index.nearest(query, count, only, params)
    if only is None:
        return _search_faiss(index, query, min(count, index.ntotal))
    return _search_faiss(index, query, min(count, only.count), _FAISS.SearchParameters(sel=only.selector))


def _search_compressed(
    index: CompressedIndex, query: NDArray[np.float32], count: int, only: RowSelection | None, params: SearchParams
) -> SearchHits:
    """Find candidates by their codes and re-rank them by their vectors."""
    available = index.ntotal if only is None else only.count
    count = min(count, available)
    wanted = count if index.stored is None else min(available, count * (params.refine or index.refine))
    selector = {} if only is None else {"sel": only.selector}
    # A large share of all vectors is not in a few lists.
    nlist, share = int(index.lists.nlist), count / max(1, available)
    nprobe = min(nlist, max(params.nprobe or int(index.lists.nprobe), math.ceil(4 * share * nlist)))
    while True:
        options = _FAISS.SearchParametersIVF(nprobe=nprobe, **selector)
        ids, similarities = _search_faiss(index.lists, query, wanted, options)
        if len(ids) >= count or nprobe == nlist:
            break
        nprobe = min(nlist, 4 * nprobe)
    if index.stored is not None:
        # In the order of the file on disk.
        ids = np.sort(ids)
        similarities = index.similarities(query, ids)
    return _rank(ids, similarities, count)


def _search_faiss(index: Any, query: NDArray[np.float32], count: int, options: Any = None) -> SearchHits:
    similarities, ids = index.search(query.reshape(1, -1), count, params=options)
    # FAISS fills missing results with -1.
    valid = ids[0] >= 0
    return _rank(ids[0][valid], similarities[0][valid], count)


def _rank(ids: NDArray[np.int64], similarities: NDArray[np.float32], count: int) -> SearchHits:
    order = np.lexsort((ids, -similarities))[:count]
    return ids[order], similarities[order]


def merge_hits(parts: Sequence[SearchHits], count: int) -> SearchHits:
    """Merge searches of parts of an index into the result of one search of all its vectors."""
    ids, similarities = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return _rank(ids, similarities, count)
