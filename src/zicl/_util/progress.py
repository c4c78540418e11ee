"""Report the progress of long work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

# Called with the number of items finished since the last call.
Progress = Callable[[int], None]


class ProgressReport(Protocol):
    """Called now and then with a stage's name, what is done, and what there is in all (if known)."""

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far ``stage`` is."""
        ...


def silent(stage: str, done: float, total: float | None = None, note: str = "") -> None:
    """Report to nobody."""


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(40), duration(600), duration(9000)
    ('40 seconds', '10 minutes', '2.5 hours')
    """
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} seconds"
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
