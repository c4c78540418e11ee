"""Pack prompts that share a prefix into one sequence that holds every shared token once.

The packed sequence is a token trie in depth-first order. A token attends to its ancestors and itself, and its position
is its depth, so that each branch reads exactly what it would read alone.
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
    """Prompts as one sequence, which follows a cached prefix of ``offset`` tokens (0: there is none).

    ``places[p][b]`` are the indices of the tokens that predict the scored tokens of branch ``b`` of prompt ``p``
    (``ROOT`` is the last token of the cached prefix); ``targets`` are the scored tokens.
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
        """The position ids: depth in the tree, after the cached prefix."""
        return self.depths + self.offset

    @property
    def trunk(self) -> int:
        """The number of tokens before the first fork: all other tokens follow them."""
        forks = self.parents[self.parents != np.arange(-1, len(self.parents) - 1)]
        return int(forks.min()) + 1 if len(forks) else len(self)

    def runs(self, first: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield the unbranched runs from token ``first`` on: start, stop, and the ancestors that are not before it."""
        starts = [i for i in range(first, len(self)) if i == first or self.parents[i] != i - 1]
        for start, stop in pairwise([*starts, len(self)]):
            ancestors, node = [], int(self.parents[start])
            while node >= first:
                ancestors.append(node)
                node = int(self.parents[node])
            yield start, stop, tuple(reversed(ancestors))

    def visible(self) -> NDArray[np.bool_]:
        """Return which tokens each token attends to, those of the cached prefix first."""
        count = len(self.tokens)
        mask = np.zeros((count, self.offset + count), dtype=bool)
        mask[:, : self.offset] = True
        tree = mask[:, self.offset :]
        for index, parent in enumerate(self.parents):
            if parent != ROOT:
                tree[index, :index] = tree[parent, :index]
            tree[index, index] = True
        return mask


class _Trie:
    """A token trie under construction."""

    def __init__(self) -> None:
        self.children: dict[tuple[int, int], int] = {}
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []

    def path(self, tokens: Sequence[int], node: int) -> list[int]:
        """Walk ``tokens`` down from ``node``, adding missing nodes; return the nodes of the path."""
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
    """Pack prompts that have the same prefix; with ``prefix_computed`` the prefix is left out, because it is cached."""
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
    """Return a sequence without branches, in which nothing is scored."""
    count = len(tokens)
    order = np.arange(count)
    return PackedPrompts(np.asarray(tokens, dtype=np.int64), order - 1, order, places=(), targets=(), offset=0)


def _check_scorable(places: list[tuple[tuple[int, ...], ...]], offset: int) -> None:
    for rows in places:
        for row in rows:
            if not row or (row[0] == ROOT and offset == 0):
                raise PromptError(
                    "a branch has nothing to score, or no token before its first scored one",
                    hint="give the model a demonstration, a given part or a beginning-of-sequence token",
                )


def _without_leaves(
    trie: _Trie,
    places: list[tuple[tuple[int, ...], ...]],
    targets: list[tuple[tuple[int, ...], ...]],
    offset: int,
) -> PackedPrompts:
    """Drop tokens without a successor: they are predicted, but predict nothing, so the model need not read them."""
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
