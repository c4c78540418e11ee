"""The paper's "physical neighbour", which Z-ICL uses: sentences next to the nearest ones in the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from zicl.inputs.pair import Pair
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, Retriever, sort_by_similarity


@dataclass(frozen=True)
class Physical(Retriever):
    """For each nearest sentence the one before it in its paragraph, else the one after it.

    With ``neighbours="domain"`` it is the one before it in its domain, also across paragraphs and documents. A nearest
    sentence without a neighbour, or whose neighbour is taken, is replaced by the next nearest. A pair is demonstrated
    by both sentences, so no two sentences are shown together twice.
    """

    needs_neighbours: ClassVar[bool] = True
    exclude_self: bool = True
    neighbours: Literal["paragraph", "domain"] = "paragraph"

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return exactly ``k`` rows with distinct texts, by the similarity of their nearest sentences."""
        candidates = CandidateFilter(index, query, exclude_self=self.exclude_self)
        find = index.neighbour if self.neighbours == "paragraph" else index.previous
        result, alone, shown_pairs = list[Retrieved](), 0, set[frozenset[int]]()
        for hit in candidates.hits():
            if len(result) == k:
                break
            neighbour = find(hit.row)
            # The only sentence of a domain precedes itself.
            if neighbour is None or neighbour == hit.row:
                alone += 1
                continue
            # The first two sentences of a paragraph are each other's neighbours.
            pair = frozenset((neighbour, hit.row))
            if pair not in shown_pairs and candidates.take(neighbour):
                result.append(Retrieved(neighbour, hit.row, hit.similarity))
                if isinstance(query.text, Pair):
                    shown_pairs.add(pair)
        if len(result) < k:
            why, hint = "the corpus has no more sentences", "use a smaller k or a larger corpus"
            if alone:
                why = f"{alone} nearest sentences are alone in their paragraph and have no physical neighbour"
                hint = "use a smaller k, a corpus of longer paragraphs, or the retrieval 'diverse'"
            raise candidates.too_few(len(result), k, why, hint)
        return sort_by_similarity(result)
