"""What a classifier learned from named, unlabelled texts; frozen, and saved with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fitted:
    """The labels' shares for each term, and the texts in the middle of the clusters; empty where not asked for.

    >>> Fitted.of(Fitted({"direct": {"yes": 0.7, "no": 0.3}}).to_dict()).priors["direct"]["yes"]
    0.7
    """

    priors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    middles: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"priors": {term: dict(shares) for term, shares in self.priors.items()}, "middles": list(self.middles)}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Fitted:
        """From what ``to_dict`` gave."""
        return cls(values["priors"], tuple(values["middles"]))
