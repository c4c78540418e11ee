"""Packing prompts that share a prefix into one sequence, every shared token once.

The packed sequence is a token trie written in depth-first order. A token attends to its ancestors and
itself, and its position is its depth, so each branch reads exactly what it would read alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from zicl.exceptions import PromptError
from zicl.prompt.builder import Prompt

ROOT = -1


@dataclass(frozen=True)
class PackedPrompts:
    """Some prompts as one sequence behind a prefix of ``offset`` tokens that was computed before.

    ``places[p][b]`` are the indices of the tokens that predict the scored tokens of branch ``b`` of
    prompt ``p`` (``ROOT`` is the last token of the computed prefix), ``targets`` the scored tokens.
    """

    tokens: NDArray[np.int64]
    parents: NDArray[np.int64]
    depths: NDArray[np.int64]
    places: tuple[tuple[tuple[int, ...], ...], ...]
    targets: tuple[tuple[tuple[int, ...], ...], ...]
    offset: int

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Position ids: depth in the tree, behind the computed prefix."""
        return self.depths + self.offset

    @property
    def trunk(self) -> int:
        """How many tokens at the beginning all others stand behind: those before the first fork."""
        forks = self.parents[self.parents != np.arange(-1, len(self.parents) - 1)]
        return int(forks.min()) + 1 if len(forks) else len(self)

    def runs(self, first: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """The unbranched runs from token ``first`` on: start, stop, and which tokens from ``first`` on are above."""
        starts = [i for i in range(first, len(self)) if i == first or self.parents[i] != i - 1]
        for start, stop in pairwise([*starts, len(self)]):
            above, node = [], int(self.parents[start])
            while node >= first:
                above.append(node)
                node = int(self.parents[node])
            yield start, stop, tuple(reversed(above))

    def visible(self) -> NDArray[np.bool_]:
        """Which tokens each token attends to, the computed prefix first."""
        count = len(self.tokens)
        mask = np.zeros((count, self.offset + count), dtype=bool)
        mask[:, : self.offset] = True
        own = mask[:, self.offset :]
        for index, parent in enumerate(self.parents):
            if parent != ROOT:
                own[index, :index] = own[parent, :index]
            own[index, index] = True
        return mask


class _Trie:
    """A token trie under construction."""

    def __init__(self) -> None:
        self.children: dict[tuple[int, int], int] = {}
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []

    def path(self, tokens: Sequence[int], node: int) -> list[int]:
        """Walk ``tokens`` down from ``node``, adding what is missing; all nodes on the way."""
        nodes = []
        for token in tokens:
            child = self.children.get((node, token))
            if child is None:
                child = len(self.tokens)
                self.children[node, token] = child
                self.tokens.append(token)
                self.parents.append(node)
                self.depths.append(0 if node == ROOT else self.depths[node] + 1)
            nodes.append(child)
            node = child
        return nodes


def pack(prompts: Sequence[Prompt], *, prefix_computed: bool = False) -> PackedPrompts:
    """Pack prompts with one common prefix; with ``prefix_computed`` the prefix itself is left out."""
    offset = len(prompts[0].prefix) if prefix_computed else 0
    trie, places, targets = _Trie(), [], []
    for prompt in prompts:
        start = () if prefix_computed else prompt.prefix.tokens
        trunk = [ROOT, *trie.path(start + prompt.stem.tokens, ROOT)]
        rows = []
        for branch in prompt.branches:
            nodes = [trunk[-1], *trie.path(branch.tokens, trunk[-1])]
            rows.append(tuple(nodes[len(branch.given) : -1]))
        places.append(tuple(rows))
        targets.append(tuple(branch.scored.tokens for branch in prompt.branches))
    _check_scorable(places, offset)
    return _without_leaves(trie, places, targets, offset)


def chain(tokens: Sequence[int]) -> PackedPrompts:
    """A plain sequence, of which nothing is scored."""
    count = len(tokens)
    order = np.arange(count)
    return PackedPrompts(np.asarray(tokens, dtype=np.int64), order - 1, order, places=(), targets=(), offset=0)


def _check_scorable(places: list[tuple[tuple[int, ...], ...]], offset: int) -> None:
    for rows in places:
        for row in rows:
            if not row or (row[0] == ROOT and offset == 0):
                raise PromptError(
                    "a branch has nothing to score, or nothing stands before its first scored token",
                    hint="give the model a demonstration, a given part or a beginning-of-sequence token",
                )


def _without_leaves(
    trie: _Trie,
    places: list[tuple[tuple[int, ...], ...]],
    targets: list[tuple[tuple[int, ...], ...]],
    offset: int,
) -> PackedPrompts:
    """Drop tokens that nothing follows: they are predicted, but predict nothing, so need not be fed."""
    parents = np.asarray(trie.parents, dtype=np.int64)
    keep = np.zeros(len(parents), dtype=bool)
    keep[parents[parents >= 0]] = True
    number = np.cumsum(keep) - 1
    kept_parents = parents[keep]
    return PackedPrompts(
        tokens=np.asarray(trie.tokens, dtype=np.int64)[keep],
        parents=np.where(kept_parents == ROOT, ROOT, number[kept_parents]),
        depths=np.asarray(trie.depths, dtype=np.int64)[keep],
        places=tuple(
            tuple(tuple(ROOT if n == ROOT else int(number[n]) for n in row) for row in rows) for rows in places
        ),
        targets=tuple(targets),
        offset=offset,
    )
