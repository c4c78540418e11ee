"""A memory that is bounded: what was not asked for the longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """At most ``most`` values, and at most ``weight`` in all.

    >>> cache = Cache[str, int](most=2)
    >>> cache.put("a", 1), cache.put("b", 2), cache.get("a"), cache.put("c", 3)
    (None, None, 1, None)
    >>> cache.get("b"), len(cache)
    (None, 2)
    """

    def __init__(self, most: int, weight: int | None = None) -> None:
        self._most, self._weight = most, weight
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """The value kept under ``key``; it then counts as just asked for."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: K, value: V, weight: int = 0) -> None:
        """Keep a value in the place of an earlier one; one that is too heavy alone is not kept."""
        if key in self._kept:
            self.weight -= self._kept.pop(key)[1]
        if self._weight is not None and weight > self._weight:
            return
        self._kept[key] = value, weight
        self.weight += weight
        while len(self._kept) > self._most or (self._weight is not None and self.weight > self._weight):
            _, (_, freed) = self._kept.popitem(last=False)
            self.weight -= freed
