"""A sign: a number read off unlabelled texts, with what it usually means and the option that addresses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["good", "look", "warn"]


@dataclass(frozen=True)
class Signal:
    """One sign. ``level`` says whether it is as one would wish, worth a look, or a warning."""

    name: str
    value: float
    level: Level
    meaning: str
    option: str


@dataclass(frozen=True)
class Bounds:
    """Beyond ``look`` a value is worth a look, beyond ``warn`` it is a warning; which way is worse, their order says.

    >>> Bounds(look=0.1, warn=0.3).level(0.2), Bounds(look=0.9, warn=0.7).level(0.2)
    ('look', 'warn')
    """

    look: float
    warn: float

    def level(self, value: float) -> Level:
        """A value on a bound is still on its better side."""
        sign = 1 if self.warn > self.look else -1
        if sign * value > sign * self.warn:
            return "warn"
        return "look" if sign * value > sign * self.look else "good"

    def signal(self, name: str, value: float, *, good: str, bad: str, option: str) -> Signal:
        """The sign with this value; what it means depends on whether it is good."""
        level = self.level(value)
        return Signal(name, value, level, good if level == "good" else bad, option)
