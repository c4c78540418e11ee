"""A bounded cache: the least recently used value is dropped first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keep at most ``max_items`` values with a total weight of at most ``max_weight``.

    >>> cache = BoundedCache[str, int](max_items=2)
    >>> cache.put("a", 1), cache.put("b", 2), cache.get("a"), cache.put("c", 3)
    (None, None, 1, None)
    >>> cache.get("b"), len(cache)
    (None, 2)
    """

    def __init__(self, max_items: int, max_weight: int | None = None) -> None:
        self._max_items, self._max_weight = max_items, max_weight
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: K) -> V | None:
        """Return the value of ``key``, which then counts as just used, or None."""
        if key not in self._items:
            return None
        self._items.move_to_end(key)
        return self._items[key][0]

    def put(self, key: K, value: V, weight: int = 0) -> None:
        """Keep a value, replacing an earlier one; a value heavier than the limit is not kept."""
        if key in self._items:
            self.weight -= self._items.pop(key)[1]
        if self._max_weight is not None and weight > self._max_weight:
            return
        self._items[key] = value, weight
        self.weight += weight
        while len(self._items) > self._max_items or (self._max_weight is not None and self.weight > self._max_weight):
            _, (_, freed) = self._items.popitem(last=False)
            self.weight -= freed

    def get_or_compute(self, key: K, compute: Callable[[], V]) -> V:
        """Return the value of ``key``, computing it at most once while it is kept.

        >>> BoundedCache[str, int](max_items=2).get_or_compute("a", lambda: 1)
        1
        """
        if key not in self._items:
            self.put(key, compute())
        self._items.move_to_end(key)
        return self._items[key][0]

    def clear(self) -> None:
        """Drop everything."""
        self._items.clear()
        self.weight = 0
