"""In which order demonstrations stand in the prompt."""

from __future__ import annotations

from zicl._util.random import rng
from zicl.config import Order


def standing(order: Order, count: int, seed: int, item: str) -> list[int]:
    """The numbers of demonstrations (0 is the farthest) as they stand; shuffled anew for every seed and item.

    >>> standing("nearest-last", 3, 0, "a text"), standing("nearest-first", 3, 0, "a text")
    ([0, 1, 2], [2, 1, 0])
    """
    if order == "shuffled":
        return [int(number) for number in rng(seed, item, "order").permutation(count)]
    return list(range(count)) if order == "nearest-last" else list(range(count))[::-1]
