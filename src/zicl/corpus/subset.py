"""A part of a corpus: without some domains, or a share of the paragraphs of each. Nothing is written for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng, stable_hash
from zicl.exceptions import ConfigError

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class CorpusSubset:
    """Which paragraphs are used. A smaller share is contained in a larger one with the same seed."""

    without: tuple[str, ...] = ()
    share: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigError(f"the share of the corpus is {self.share}", hint="expected more than 0 and at most 1")

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return not self.without and self.share == 1

    def key(self, text: str) -> str:
        """Identifies this part of the corpus whose text has the hash ``text``."""
        if self.whole:
            return text
        sampled = (self.share, self.seed) if self.share < 1 else ()
        return f"{stable_hash(text, *sorted(self.without), *sampled):032x}"

    def rows(self, names: Sequence[str], domains: NDArray[Any], positions: NDArray[Any]) -> NDArray[np.bool_]:
        """For each row whether it is used, from the domains' names, its domain's number and its position.

        >>> CorpusSubset(without=("b",)).rows(["a", "b"], np.array([0, 0, 1]), np.array([0, 1, 0])).tolist()
        [True, True, False]
        """
        used: NDArray[np.bool_] = ~np.isin(domains, [n for n, name in enumerate(names) if name in self.without])
        if self.share == 1:
            return used
        starts = positions == 0
        of_paragraphs, chosen = domains[starts], np.zeros(int(starts.sum()), dtype=bool)
        # Each domain is sampled by itself: leaving another out must not change what is taken of it.
        for number, name in enumerate(names):
            own = np.flatnonzero(of_paragraphs == number)
            order = rng(self.seed, "share of the corpus", name).permutation(own)
            chosen[order[: math.ceil(round(self.share * len(own), 6))]] = True
        used &= chosen[np.cumsum(starts) - 1]
        return used


@dataclass(frozen=True, eq=False)
class DuplicateReplacements:
    """Sentences that are indexed in a part because the first one with their text is left out of it.

    Parallel arrays, sorted by ``hashes``: the text's hash, the row left out, and the row in its place.
    """

    hashes: NDArray[np.uint64]
    replaced: Rows
    rows: Rows

    @classmethod
    def match(
        cls, hashes: NDArray[np.uint64], rows: Rows, left_out_hashes: NDArray[np.uint64], left_out: Rows
    ) -> DuplicateReplacements:
        """Of duplicates in use and of indexed rows left out: the first duplicate of each of the latter.

        >>> known = np.array([7, 9], dtype=np.uint64)
        >>> hashes, rows = np.array([9, 5, 9], dtype=np.uint64), np.array([3, 4, 5])
        >>> found = DuplicateReplacements.match(hashes, rows, known, np.array([0, 1]))
        >>> found.replaced.tolist(), found.rows.tolist()
        ([1], [3])
        """
        distinct, first = np.unique(hashes, return_index=True)
        common, here, there = np.intersect1d(distinct, left_out_hashes, return_indices=True)
        return cls(common, left_out[there], rows[first[here]])

    def row_of(self, wanted: int) -> int | None:
        """The row in the place of the one left out whose text has this hash."""
        place = int(np.searchsorted(self.hashes, np.uint64(wanted)))
        found = place < len(self.hashes) and int(self.hashes[place]) == wanted
        return int(self.rows[place]) if found else None

    def standing(self, rows: Rows, used: NDArray[np.bool_]) -> Rows:
        """For each of these ascending indexed rows: itself where it is used, the row in its place, or -1."""
        standing = np.where(used[rows], rows, -1)
        places = np.searchsorted(rows, self.replaced)
        inside = places < len(rows)
        inside[inside] = rows[places[inside]] == self.replaced[inside]
        standing[places[inside]] = self.rows[inside]
        return standing


NO_REPLACEMENTS = DuplicateReplacements(
    np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
)
