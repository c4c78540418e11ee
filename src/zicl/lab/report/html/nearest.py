"""The nearest sentences that demonstrations were found through: rows keep only what was shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zicl.exceptions import ModelError
from zicl.lab.report.html.predictions import Demo
from zicl.retrieve.index import Index

# Similarities of one text and sentence, computed on two machines, differ by less.
_SAME = 1e-4


def found_through(config: dict[str, Any]) -> bool:
    """Whether a method shows other sentences than the nearest ones it finds them through."""
    return _method(config) in ("physical", "domain-random")


def _method(config: dict[str, Any]) -> Any:
    return (config.get("retrieval") or {}).get("method")


class NearestSentences:
    """Finds them by asking the corpus again, once a text; where it cannot be asked, both sentences beside remain."""

    def __init__(self, index: Index) -> None:
        self.index, self.unasked = index, ""
        self._found: dict[str, dict[int, float]] = {}

    def of(self, text: str | None, demos: Sequence[Demo], config: dict[str, Any]) -> list[tuple[int, ...]]:
        """For each demonstration the row of its nearest sentence; several where it may be any of them."""
        method = _method(config)
        rows = [int(demo.id) if demo.id.isdecimal() else -1 for demo in demos]
        if method in ("nearest", "diverse"):
            return [(row,) if row >= 0 else () for row in rows]
        if method == "domain-random" and text is not None:
            return self._same_domain(rows, demos, self._asked(text, demos))
        if method != "physical":
            return [()] * len(demos)
        beside = [self._beside(row) for row in rows]
        if text is None or not any(len(each) > 1 for each in beside):
            return beside
        similarities = self._asked(text, demos)
        return [_those(each, demo, similarities) for each, demo in zip(beside, demos, strict=True)]

    def _same_domain(
        self, rows: Sequence[int], demos: Sequence[Demo], similarities: dict[int, float]
    ) -> list[tuple[int, ...]]:
        """The sentence of a demonstration's domain that has its similarity, where there is just one."""
        domains = {row: self.index.corpus.domain(row) for row in similarities}
        found = list[tuple[int, ...]]()
        for row, demo in zip(rows, demos, strict=True):
            own = self.index.corpus.domain(row) if row >= 0 else None
            same = _alike([other for other, domain in domains.items() if domain == own], demo, similarities)
            found.append(tuple(same) if len(same) == 1 else ())
        return found

    def _beside(self, row: int) -> tuple[int, ...]:
        """The sentences whose physical neighbour this one is."""
        around = [other for other in (row - 1, row + 1) if 0 <= other < len(self.index.corpus)] if row >= 0 else []
        return tuple(other for other in around if self.index.neighbour(other) == row)

    def _asked(self, text: str, demos: Sequence[Demo]) -> dict[int, float]:
        """The similarities of all sentences that are as near as the farthest of these was found through."""
        lowest = min((demo.similarity for demo in demos if demo.similarity is not None), default=1.0)
        known = self._found.setdefault(text, {})
        if self.unasked or (known and min(known.values()) < lowest - _SAME):
            return known
        try:
            for hit in self.index.nearest(text):
                known[hit.row] = hit.similarity
                if hit.similarity < lowest - _SAME:
                    break
        except ModelError as error:
            # The page is still right without: it then names both sentences beside a demonstration.
            self.unasked = str(error)
        return known


def _those(beside: tuple[int, ...], demo: Demo, similarities: dict[int, float]) -> tuple[int, ...]:
    same = _alike(beside, demo, similarities)
    return tuple(same) if len(same) == 1 else beside


def _alike(rows: Sequence[int], demo: Demo, similarities: dict[int, float]) -> list[int]:
    """Those of the rows that have the similarity of a demonstration."""
    if demo.similarity is None:
        return []
    return [row for row in rows if abs(similarities.get(row, 2.0) - demo.similarity) < _SAME]
