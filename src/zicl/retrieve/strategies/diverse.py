"""The paper's "diverse nearest": k of the K = 4096 nearest sentences, drawn uniformly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, Retriever, draw_rows


@dataclass(frozen=True)
class Diverse(Retriever):
    """k of the ``pool`` nearest sentences, without replacement; a pool below 1 is a fraction of the corpus."""

    draws: ClassVar[bool] = True
    pool: int | float = 4096
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return exactly ``k`` rows with distinct texts, nearest first."""
        candidates = CandidateFilter(index, query, exclude_self=self.exclude_self)
        # A fraction of a small corpus may be less than k: twice k leaves something to draw from.
        pool = self.pool if isinstance(self.pool, int) else max(2 * k, round(self.pool * len(index.indexed())))
        hits = list(islice(candidates.hits(), pool))
        drawn = (number for number in draw_rows(query, "diverse", len(hits)) if candidates.take(hits[number].row))
        chosen = list(islice(drawn, k))
        if len(chosen) < k:
            why, hint = f"the pool holds {len(hits)}", "use a smaller k, a larger pool or a larger corpus"
            raise candidates.too_few(len(chosen), k, why, hint)
        return [Retrieved(hits[n].row, hits[n].row, hits[n].similarity) for n in sorted(chosen)]
