"""A uniform sample of at most N paragraphs in one pass, the same for the same seed."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import stable_hash

_BITS = 2**64 - 1


def _mix(number: int) -> int:
    """The finaliser of SplitMix64: neighbouring numbers become unrelated ones, at a fraction of a hash's cost."""
    number = (number + 0x9E3779B97F4A7C15) & _BITS
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _BITS
    return number ^ (number >> 31)


class ParagraphSample:
    """Keeps the N items of smallest priority, mixed from (seed, domain, number): a uniform sample.

    ``offer`` says whether an item may still be among them. Some it lets through are pushed out later,
    so the caller drops at the end what ``keeps`` rejects. At most 2 N priorities of eight bytes are held.

    >>> sample = ParagraphSample(2, seed=0, domain="d")
    >>> offered = [p for n in range(100) if (p := sample.offer(n)) is not None]
    >>> int(sample.keeps(np.array(offered, dtype=np.uint64)).sum())
    2
    """

    def __init__(self, limit: int, seed: int, domain: str) -> None:
        self.limit = limit
        self._start = stable_hash(seed, domain)
        self._held = array("Q")
        self._bound = 2**64

    def offer(self, number: int) -> int | None:
        """The priority of item ``number``, or None if it cannot be in the sample."""
        priority = _mix(self._start + number)
        if priority >= self._bound:
            return None
        self.hold(priority)
        return priority

    def hold(self, priority: int) -> None:
        """Count a priority as seen (also used when a build resumes)."""
        self._held.append(priority)
        if len(self._held) >= 2 * self.limit:
            self._trim()

    def _trim(self) -> None:
        if len(self._held) > self.limit:
            smallest = np.partition(np.frombuffer(self._held, dtype=np.uint64), self.limit - 1)[: self.limit]
            self._held = array("Q", smallest.tobytes())
            self._bound = int(smallest.max()) + 1

    def keeps(self, priorities: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these are in the sample of all that was offered."""
        self._trim()
        if self._bound >= 2**64:
            return np.ones(len(priorities), dtype=bool)
        return priorities < np.uint64(self._bound)
