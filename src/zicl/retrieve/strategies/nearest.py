"""Nearest neighbours, the retrieval of the paper's "naive Z-ICL"."""

from __future__ import annotations

from dataclasses import dataclass

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, Retriever


@dataclass(frozen=True)
class Nearest(Retriever):
    """The k sentences most similar to the input."""

    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return exactly ``k`` rows with distinct texts, nearest first."""
        candidates = CandidateFilter(index, query, exclude_self=self.exclude_self)
        nearest = (Retrieved(hit.row, hit.row, hit.similarity) for hit in candidates.hits() if candidates.take(hit.row))
        return candidates.collect(nearest, k, "the corpus has no more sentences", "use a smaller k or a larger corpus")
