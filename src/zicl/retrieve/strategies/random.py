"""The paper's baseline "random inputs", and "domain random": random sentences of the nearest ones' domains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import SHARED_ITEM, CandidateFilter, Query, Retrieved, Retriever, draw_rows


@dataclass(frozen=True)
class Random(Retriever):
    """k sentences drawn once per seed for all inputs; only an input that is among them gets another one instead."""

    draws: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return exactly ``k`` rows with distinct texts, in the order drawn."""
        candidates = CandidateFilter(index, query, exclude_self=self.exclude_self)
        rows = index.indexed()
        numbers = draw_rows(Query(query.text, query.seed, SHARED_ITEM), "random", len(rows))
        drawn = (Retrieved(int(row)) for row in (rows[number] for number in numbers) if candidates.take(int(row)))
        return candidates.collect(drawn, k, "the corpus has no more sentences", "use a smaller k or a larger corpus")


@dataclass(frozen=True)
class DomainRandom(Retriever):
    """For each nearest sentence a random one of its domain, so that the two share nothing but the domain."""

    draws: ClassVar[bool] = True
    needs_neighbours: ClassVar[bool] = True
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return exactly ``k`` rows with distinct texts, by the similarity of their nearest sentences."""
        candidates = CandidateFilter(index, query, exclude_self=self.exclude_self)
        rows_of = dict[str, Iterator[int]]()

        def drawn() -> Iterator[Retrieved]:
            for hit in candidates.hits():
                domain = index.sentence(hit.row).domain
                if domain not in rows_of:
                    rows_of[domain] = _shuffled_rows(index, query, domain)
                row = next((row for row in rows_of[domain] if candidates.take(row)), None)
                if row is not None:
                    yield Retrieved(row, hit.row, hit.similarity)

        return candidates.collect(
            drawn(), k, "the domains have no more sentences", "use a smaller k or a larger corpus"
        )


def _shuffled_rows(index: Searchable, query: Query, domain: str) -> Iterator[int]:
    """Yield all indexed rows of a domain in a random order that depends on the query."""
    rows = index.indexed(domain)
    return (int(rows[number]) for number in draw_rows(query, f"domain {domain}", len(rows)))
