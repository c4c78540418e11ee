"""Nearest: the k most similar sentences (the paper's naive variant)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, sort_by_similarity


@dataclass(frozen=True)
class Nearest:
    """The k sentences most similar to the input."""

    draws: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    needs_neighbours: ClassVar[bool] = False
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, nearest first."""
        keep, found = CandidateFilter(index, query, exclude_self=self.exclude_self), list[Retrieved]()
        for hit in keep.hits():
            if len(found) == k:
                break
            if keep.take(hit.row):
                found.append(Retrieved(hit.row, hit.row, hit.similarity))
        if len(found) < k:
            raise keep.too_few(len(found), k, "the corpus has no more sentences", "use a smaller k or a larger corpus")
        return sort_by_similarity(found)
