"""What a distilled classifier says about a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Answer:
    """One classified text. Probabilities stand in the order of the labels.

    >>> answer = Answer("It rained.", {"dull": 0.7, "fine": 0.3})
    >>> answer.label, round(answer.margin, 3)
    ('dull', 0.4)
    """

    text: str
    probabilities: Mapping[str, float]

    @cached_property
    def label(self) -> str:
        """The label of the highest probability."""
        return max(self.probabilities, key=lambda name: self.probabilities[name])

    @cached_property
    def margin(self) -> float:
        """How far the first probability is above the second."""
        first, second = sorted(self.probabilities.values(), reverse=True)[:2]
        return first - second
