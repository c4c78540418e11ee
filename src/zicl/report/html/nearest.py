"""The nearest sentences that demonstrations were found through: rows keep only what was shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zicl.exceptions import ModelError
from zicl.report.html.predictions import Demo
from zicl.retrieve.index import Index

# Similarities of one text and sentence, computed on two machines, differ by less.
_SAME = 1e-4


class NearestSentences:
    """Finds them by asking the corpus again, once a text; where it cannot be asked, both sentences beside remain."""

    def __init__(self, index: Index) -> None:
        self.index, self.unasked = index, ""
        self._found: dict[str, dict[int, float]] = {}

    def of(self, text: str | None, demos: Sequence[Demo], config: dict[str, Any]) -> list[tuple[int, ...]]:
        """For each demonstration the row of its nearest sentence; several where it may be any of them."""
        method = (config.get("retrieval") or {}).get("method")
        rows = [int(demo.id) if demo.id.isdecimal() else -1 for demo in demos]
        if method in ("nearest", "diverse"):
            return [(row,) if row >= 0 else () for row in rows]
        if method != "physical":
            return [()] * len(demos)
        beside = [self._beside(row) for row in rows]
        if text is None or not any(len(each) > 1 for each in beside):
            return beside
        lowest = min((demo.similarity for demo in demos if demo.similarity is not None), default=1.0)
        similarities = self._asked(text, lowest)
        return [_those(each, demo, similarities) for each, demo in zip(beside, demos, strict=True)]

    def _beside(self, row: int) -> tuple[int, ...]:
        """The sentences whose physical neighbour this one is."""
        around = [other for other in (row - 1, row + 1) if 0 <= other < len(self.index.corpus)] if row >= 0 else []
        return tuple(other for other in around if self.index.neighbour(other) == row)

    def _asked(self, text: str, lowest: float) -> dict[int, float]:
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
    if demo.similarity is None:
        return beside
    same = [row for row in beside if abs(similarities.get(row, 2.0) - demo.similarity) < _SAME]
    return tuple(same) if len(same) == 1 else beside
