"""Report the progress of long work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

# Called with the number of items finished since the last call.
Progress = Callable[[int], None]


class ProgressReport(Protocol):
    """A callback that gets the name of a stage, how much of it is done, and the total (if known)."""

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        """Report the progress of ``stage``; ``note`` is shown beside the bar."""
        ...


def silent(stage: str, done: float, total: float | None = None, note: str = "") -> None:
    """Discard the report."""


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> duration(40), duration(600), duration(9000)
    ('40 seconds', '10 minutes', '2.5 hours')
    """
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} seconds"
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
