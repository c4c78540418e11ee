"""Random inputs: one set of sentences for all inputs, whatever they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import SHARED_ITEM, CandidateFilter, Query, Retrieved, draw_rows, sort_by_similarity


@dataclass(frozen=True)
class Random:
    """k sentences drawn once per seed; only an input that is among them gets another in its place."""

    draws: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    needs_neighbours: ClassVar[bool] = False
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, in the order drawn."""
        keep, found = CandidateFilter(index, query, exclude_self=self.exclude_self), list[Retrieved]()
        rows = index.indexed()
        for number in draw_rows(Query(query.text, query.seed, SHARED_ITEM), "random", len(rows)):
            if len(found) == k:
                break
            if keep.take(int(rows[number])):
                found.append(Retrieved(int(rows[number])))
        if len(found) < k:
            raise keep.too_few(len(found), k, "the corpus has no more sentences", "use a smaller k or a larger corpus")
        return found


# -- Domain random: for each nearest sentence, a random one of its domain.


@dataclass(frozen=True)
class DomainRandom:
    """Sentences that share the domain of the nearest ones and nothing else."""

    draws: ClassVar[bool] = True
    shared: ClassVar[bool] = False
    needs_neighbours: ClassVar[bool] = True
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, by the similarity of their nearest sentence."""
        keep, found = CandidateFilter(index, query, exclude_self=self.exclude_self), list[Retrieved]()
        draws: dict[str, Iterator[int]] = {}
        for hit in keep.hits():
            if len(found) == k:
                break
            domain = index.sentence(hit.row).domain
            if domain not in draws:
                draws[domain] = _rows_of(index, query, domain)
            row = next((row for row in draws[domain] if keep.take(row)), None)
            if row is not None:
                found.append(Retrieved(row, hit.row, hit.similarity))
        if len(found) < k:
            raise keep.too_few(
                len(found), k, "the domains have no more sentences", "use a smaller k or a larger corpus"
            )
        return sort_by_similarity(found)


def _rows_of(index: Searchable, query: Query, domain: str) -> Iterator[int]:
    """All indexed rows of a domain in the query's own random order."""
    rows = index.indexed(domain)
    return (int(rows[number]) for number in draw_rows(query, f"domain {domain}", len(rows)))
