"""A part of a corpus, chosen in memory: without some domains, or with a fraction of the paragraphs of each."""

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
    """Which paragraphs are used. With the same seed, a smaller share is contained in a larger one."""

    without: tuple[str, ...] = ()
    share: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigError(f"the share of the corpus is {self.share}", hint="expected more than 0 and at most 1")

    @property
    def is_everything(self) -> bool:
        """Whether it is the complete corpus."""
        return not self.without and self.share == 1

    def identity(self, text_hash: str) -> str:
        """Return a string that identifies this part of the corpus with that hash; the hash itself if it is all."""
        if self.is_everything:
            return text_hash
        sampled = (self.share, self.seed) if self.share < 1 else ()
        return f"{stable_hash(text_hash, *sorted(self.without), *sampled):032x}"

    def mask(self, names: Sequence[str], domains: NDArray[Any], positions: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each row whether it is used.

        ``names`` are those of the domains; ``domains`` and ``positions`` hold the domain's number and the position in
        the paragraph of each row.

        >>> CorpusSubset(without=("b",)).mask(["a", "b"], np.array([0, 0, 1]), np.array([0, 1, 0])).tolist()
        [True, True, False]
        """
        used: NDArray[np.bool_] = ~np.isin(domains, [n for n, name in enumerate(names) if name in self.without])
        if self.share == 1:
            return used
        starts = positions == 0
        paragraph_domains, chosen = domains[starts], np.zeros(int(starts.sum()), dtype=bool)
        # Each domain is sampled separately: leaving out another one must not change its sample.
        for number, name in enumerate(names):
            candidates = np.flatnonzero(paragraph_domains == number)
            order = rng(self.seed, "share of the corpus", name).permutation(candidates)
            chosen[order[: math.ceil(round(self.share * len(candidates), 6))]] = True
        used &= chosen[np.cumsum(starts) - 1]
        return used


@dataclass(frozen=True, eq=False)
class DuplicateReplacements:
    """Duplicates that are indexed in a subset, because the first sentence with their text is not part of it.

    Parallel arrays, sorted by ``hashes``: the hash of the text, the row that is left out, and the row that replaces it.
    """

    hashes: NDArray[np.uint64]
    replaced: Rows
    rows: Rows

    @classmethod
    def match(
        cls, hashes: NDArray[np.uint64], rows: Rows, left_out_hashes: NDArray[np.uint64], left_out: Rows
    ) -> DuplicateReplacements:
        """Find the first of the duplicates ``rows`` for each indexed row that is left out, by the hashes of the texts.

        >>> known = np.array([7, 9], dtype=np.uint64)
        >>> hashes, rows = np.array([9, 5, 9], dtype=np.uint64), np.array([3, 4, 5])
        >>> matched = DuplicateReplacements.match(hashes, rows, known, np.array([0, 1]))
        >>> matched.replaced.tolist(), matched.rows.tolist()
        ([1], [3])
        """
        distinct, first = np.unique(hashes, return_index=True)
        common, here, there = np.intersect1d(distinct, left_out_hashes, return_indices=True)
        return cls(common, left_out[there], rows[first[here]])

    def row_of(self, text_hash: int) -> int | None:
        """Return the replacement of the row whose text has this hash, or None."""
        place = int(np.searchsorted(self.hashes, np.uint64(text_hash)))
        matches = place < len(self.hashes) and int(self.hashes[place]) == text_hash
        return int(self.rows[place]) if matches else None

    def replace_rows(self, rows: Rows, used: NDArray[np.bool_]) -> Rows:
        """Return for each of these ascending indexed rows the row itself if it is used, its replacement, or -1."""
        result = np.where(used[rows], rows, -1)
        places = np.searchsorted(rows, self.replaced)
        inside = places < len(rows)
        inside[inside] = rows[places[inside]] == self.replaced[inside]
        result[places[inside]] = self.rows[inside]
        return result


NO_REPLACEMENTS = DuplicateReplacements(
    np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
)
