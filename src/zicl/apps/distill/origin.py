"""Where a distilled classifier comes from: kept with it, so that nobody has to guess what it repeats, and how well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from zicl.apps.distill.agreement import Agreement


@dataclass(frozen=True)
class Origin:
    """What it was distilled from, and how.

    ``lm`` is the language model's name and ``teacher`` all its answers depended on, its identity, settings and seed
    among them. Of the ``texts`` that were given, ``distinct`` are different, the model was asked about ``sample``, and
    ``trained`` of those were learned from with scikit-learn's C at ``strength``, the best of ``losses``; the rest are
    the rows of ``agreement``.
    """

    lm: str
    teacher: Mapping[str, Any]
    texts: int
    distinct: int
    sample: int
    trained: int
    strength: float
    losses: tuple[tuple[float, float], ...]
    agreement: Agreement

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Origin:
        """From what ``to_dict`` gave, also by way of JSON, which has no tuples."""
        losses = tuple((float(strength), float(loss)) for strength, loss in values["losses"])
        return cls(**{**values, "losses": losses, "agreement": Agreement.of(values["agreement"])})
