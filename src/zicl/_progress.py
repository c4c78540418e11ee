"""How long work says how far it is."""

from __future__ import annotations

from typing import Protocol


class Report(Protocol):
    """Called now and then with a stage's name, what is done, and what there is in all (if known)."""

    def __call__(self, stage: str, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far ``stage`` is."""
        ...


def silent(stage: str, done: float, total: float | None = None, note: str = "") -> None:
    """Report to nobody."""
