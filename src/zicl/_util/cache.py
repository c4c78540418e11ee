"""A bounded cache: the least recently used value is dropped first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keep at most ``most`` values with a total weight of at most ``weight``.

    >>> cache = BoundedCache[str, int](most=2)
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
        """Return the value of ``key``, which then counts as just used."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: K, value: V, weight: int = 0) -> None:
        """Keep a value, replacing an earlier one; a value heavier than the limit is not kept."""
        if key in self._kept:
            self.weight -= self._kept.pop(key)[1]
        if self._weight is not None and weight > self._weight:
            return
        self._kept[key] = value, weight
        self.weight += weight
        while len(self._kept) > self._most or (self._weight is not None and self.weight > self._weight):
            _, (_, freed) = self._kept.popitem(last=False)
            self.weight -= freed

    def get_or_compute(self, key: K, compute: Callable[[], V]) -> V:
        """Return the value of ``key``, computing it at most once while it is kept.

        >>> BoundedCache[str, int](most=2).get_or_compute("a", lambda: 1)
        1
        """
        if key not in self._kept:
            self.put(key, compute())
            return self._kept[key][0]
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self.weight = 0
