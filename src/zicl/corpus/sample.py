"""Draw a uniform sample of at most N paragraphs in one pass, the same for the same seed."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import stable_hash

_MASK = 2**64 - 1


class ParagraphSample:
    """The N paragraphs with the smallest priorities, which are random numbers from (seed, domain, number).

    ``offer`` returns the priority of a paragraph that may be in the sample. Later ones may displace it, so that the
    caller drops in the end what ``keeps`` rejects. At most 2 N priorities of eight bytes are in memory.

    >>> sample = ParagraphSample(2, seed=0, domain="d")
    >>> offered = [p for n in range(100) if (p := sample.offer(n)) is not None]
    >>> int(sample.keeps(np.array(offered, dtype=np.uint64)).sum())
    2
    """

    def __init__(self, limit: int, seed: int, domain: str) -> None:
        self.limit = limit
        self._start = stable_hash(seed, domain)
        self._priorities = array("Q")
        self._bound = 2**64

    def offer(self, number: int) -> int | None:
        """Return the priority of paragraph ``number``, or None if it cannot be in the sample."""
        priority = _mix(self._start + number)
        if priority >= self._bound:
            return None
        self.add(priority)
        return priority

    def add(self, priority: int) -> None:
        """Count the priority of an offered paragraph; a resumed build adds those of earlier shards."""
        self._priorities.append(priority)
        if len(self._priorities) >= 2 * self.limit:
            self._trim()

    def _trim(self) -> None:
        if len(self._priorities) > self.limit:
            smallest = np.partition(np.frombuffer(self._priorities, dtype=np.uint64), self.limit - 1)[: self.limit]
            self._priorities = array("Q", smallest.tobytes())
            self._bound = int(smallest.max()) + 1

    def keeps(self, priorities: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return for each priority whether it is in the sample of all that was offered."""
        self._trim()
        if self._bound >= 2**64:
            return np.ones(len(priorities), dtype=bool)
        return priorities < np.uint64(self._bound)


def _mix(number: int) -> int:
    """Return the SplitMix64 hash of a number: random-looking bits, much faster than a cryptographic hash."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)
