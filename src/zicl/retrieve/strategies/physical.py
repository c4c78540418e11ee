"""Physical neighbour: the sentences that stand beside the nearest ones (the paper's choice)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zicl.inputs.pair import Pair
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, sort_by_similarity


@dataclass(frozen=True)
class Physical:
    """For each nearest sentence the one before it in its paragraph, else the one after it.

    A nearest sentence without a neighbour, or whose neighbour is shown already, gives its place to the
    next nearest. For a pair both are shown, so there the two sentences together count.
    """

    draws: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    needs_neighbours: ClassVar[bool] = True
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, by the similarity of their nearest sentence."""
        keep, found, alone = CandidateFilter(index, query, exclude_self=self.exclude_self), list[Retrieved](), 0
        pair, together = isinstance(query.text, Pair), set[frozenset[int]]()
        for hit in keep.hits():
            if len(found) == k:
                break
            neighbour = index.neighbour(hit.row)
            if neighbour is None:
                alone += 1
                continue
            # The first two sentences of a paragraph are each other's neighbours.
            both = frozenset((neighbour, hit.row))
            if both not in together and keep.take(neighbour):
                found.append(Retrieved(neighbour, hit.row, hit.similarity))
                if pair:
                    together.add(both)
        if len(found) < k:
            why, hint = "the corpus has no more sentences", "use a smaller k or a larger corpus"
            if alone:
                why = f"{alone} nearest sentences stand alone in their paragraph and have no physical neighbour"
                hint = "use a smaller k, a corpus of longer paragraphs, or the retrieval 'diverse'"
            raise keep.too_few(len(found), k, why, hint)
        return sort_by_similarity(found)
