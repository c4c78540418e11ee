"""The prompts that heads are found on: nearest training examples, as many of each label, in random order.

Else a head need not copy to get a high score: of the nearest examples most have the answer's label, so that looking at
all labels alike would do, and the very nearest stands last, so that looking at the last label would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import Filter, Query, Retrieved, by_similarity, too_few
from zicl.score.pipeline import Pipeline


@dataclass(frozen=True)
class NearestOfEach:
    """The nearest rows, as many of each label; ``by_row`` holds the rows' labels."""

    by_row: tuple[str, ...]
    exclude_self: bool = True
    shared: ClassVar[bool] = False

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, nearest first."""
        keep, found = Filter(index, query, exclude_self=self.exclude_self), list[Retrieved]()
        left = dict.fromkeys(self.by_row, k // len(set(self.by_row)))
        for hit in keep.hits():
            if len(found) == k:
                break
            if left[self.by_row[hit.row]] and keep.take(hit.row):
                left[self.by_row[hit.row]] -= 1
                found.append(Retrieved(hit.row, hit.row, hit.similarity))
        if len(found) < k:
            few = min(Counter(self.by_row).items(), key=lambda each: each[1])
            why = f"as many of each label are shown, and of {few[0]!r} there are {few[1]} examples"
            raise too_few(len(found), k, why, "use a smaller k, or name more training examples")
        return by_similarity(found)


def balanced(pipeline: Pipeline, by_row: Sequence[str], *, exclude_self: bool = True) -> Pipeline:
    """A pipeline over training examples with these labels, showing as many of each; k becomes a multiple of theirs."""
    classes = len(set(by_row))
    return replace(
        pipeline,
        retriever=NearestOfEach(tuple(by_row), exclude_self),
        k=max(pipeline.k // classes, 1) * classes,
        order="shuffled",
    )
