"""The class shown with the nearest, and with the last, demonstration in the prompt."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Lists(NamedTuple):
    """A column of lists: how long each is, and all their values one after the other."""

    lengths: Ints
    values: NDArray[Any]

    @property
    def ends(self) -> Ints:
        """Where each list ends among the values."""
        return np.cumsum(self.lengths)


def last_shown(labels: Lists, kept: Ints) -> Ints:
    """The class of the last demonstration, -1 where there is none.

    >>> last_shown(Lists(np.array([2, 1, 0]), np.array([1, 0, 1])), np.array([2, 1, 0]))
    array([ 0,  1, -1])
    """
    shown = np.minimum(labels.lengths, kept) > 0
    return _classes(labels, np.where(shown, labels.ends - 1, -1))


def nearest_shown(labels: Lists, similarities: Lists, kept: Ints) -> Ints:
    """The same for the most similar of the kept demonstrations, which are the last ``kept`` of each list.

    >>> labels = Lists(np.array([3]), np.array([1, 0, 1]))
    >>> nearest_shown(labels, Lists(np.array([3]), np.array([0.9, 0.8, 0.7])), np.array([2]))
    array([0])
    """
    shown = (np.minimum(labels.lengths, kept) > 0) & (similarities.lengths == labels.lengths)
    at = np.full(len(kept), -1, dtype=np.int64)
    if not shown.any():
        return at
    # All kept demonstrations of all rows in one line; the start of each row's piece cuts it for reduceat.
    count = np.minimum(labels.lengths, kept)[shown]
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    back = np.repeat(count, count) - (np.arange(count.sum()) - np.repeat(starts, count))
    score = similarities.values[np.repeat(similarities.ends[shown], count) - back]
    best = np.repeat(np.maximum.reduceat(score, starts), count)
    # Of equally near ones the later, which stands closer to the input.
    position = np.repeat(labels.ends[shown], count) - back
    at[shown] = np.maximum.reduceat(np.where(score == best, position, -1), starts)
    return _classes(labels, at)


def _classes(labels: Lists, at: Ints) -> Ints:
    out = np.full(len(at), -1, dtype=np.int64)
    out[at >= 0] = labels.values[at[at >= 0]]
    return out
