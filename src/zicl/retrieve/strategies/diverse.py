"""Diverse nearest: k of the K most similar sentences, drawn uniformly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, draw_rows


@dataclass(frozen=True)
class Diverse:
    """k of the ``pool`` nearest sentences, uniformly, without replacement; a pool below 1 is a share of the corpus."""

    draws: ClassVar[bool] = True
    shared: ClassVar[bool] = False
    needs_neighbours: ClassVar[bool] = False
    pool: int | float = 4096
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, nearest first."""
        keep, chosen = CandidateFilter(index, query, exclude_self=self.exclude_self), list[int]()
        # A share of a small corpus may be less than k: then there is still something to draw from.
        pool = self.pool if isinstance(self.pool, int) else max(2 * k, round(self.pool * len(index.indexed())))
        hits = list(islice(keep.hits(), pool))
        for number in draw_rows(query, "diverse", len(hits)):
            if len(chosen) == k:
                break
            if keep.take(hits[number].row):
                chosen.append(number)
        if len(chosen) < k:
            raise keep.too_few(
                len(chosen),
                k,
                f"the pool holds {len(hits)}",
                "use a smaller k, a larger pool or a larger corpus",
            )
        return [Retrieved(hits[n].row, hits[n].row, hits[n].similarity) for n in sorted(chosen)]
