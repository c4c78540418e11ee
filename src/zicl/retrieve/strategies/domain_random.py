"""Domain random: for each nearest sentence, a random one of its domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import Filter, Query, Retrieved, by_similarity, draw


@dataclass(frozen=True)
class DomainRandom:
    """Sentences that share the domain of the nearest ones and nothing else."""

    shared: ClassVar[bool] = False
    exclude_self: bool = True

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, by the similarity of their nearest sentence."""
        keep, found = Filter(index, query, exclude_self=self.exclude_self), list[Retrieved]()
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
        return by_similarity(found)


def _rows_of(index: Searchable, query: Query, domain: str) -> Iterator[int]:
    """All indexed rows of a domain in the query's own random order."""
    rows = index.indexed(domain)
    return (int(rows[number]) for number in draw(query, f"domain {domain}", len(rows)))
