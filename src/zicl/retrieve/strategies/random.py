"""Random inputs: one set of sentences for all inputs, whatever they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import Filter, Query, Retrieved, draw

# All inputs share one item, so that sentences and labels are drawn once per seed.
SHARED_ITEM = "all inputs"


@dataclass(frozen=True)
class Random:
    """k sentences drawn once per seed; only an input that is among them gets another in its place."""

    shared: ClassVar[bool] = True
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, in the order drawn."""
        keep, found = Filter(index, query, exclude_self=self.exclude_self), list[Retrieved]()
        rows = index.indexed()
        for number in draw(Query(query.text, query.seed, SHARED_ITEM), "random", len(rows)):
            if len(found) == k:
                break
            if keep.take(int(rows[number])):
                found.append(Retrieved(int(rows[number])))
        if len(found) < k:
            raise keep.too_few(len(found), k, "the corpus has no more sentences", "use a smaller k or a larger corpus")
        return found
