"""How well the small classifier repeats the language model, on rows it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl.apps.check.score import wilson
from zicl.apps.distill.train import loss
from zicl.score.calibration import Scores

_TINY = 1e-300


@dataclass(frozen=True)
class LabelAgreement:
    """One label: rows the language model gave it, rows the small classifier gave it, and what they agree on.

    ``agreement`` is the share of the language model's rows with the same label here, and ``divergence`` their mean
    Kullback-Leibler divergence; None where the language model gave the label to no row.
    """

    label: str
    rows: int
    given: int
    agreement: float | None
    divergence: float | None


@dataclass(frozen=True)
class Agreement:
    """The share of equal labels with a 95 % interval, and how far the probabilities lie apart.

    ``majority`` is the share one gets by always saying ``most``, the language model's most frequent label: an
    agreement means something only above it.
    """

    rows: int
    value: float
    low: float
    high: float
    most: str
    majority: float
    log_loss: float
    divergence: float
    labels: tuple[LabelAgreement, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Agreement:
        """From plain values."""
        return cls(**{**values, "labels": tuple(LabelAgreement(**entry) for entry in values["labels"])})


def measure_agreement(names: Sequence[str], shares: Scores, scores: Scores) -> Agreement:
    """Compare the language model's probabilities with the small classifier's scores, a row each."""
    theirs, ours = shares.argmax(axis=1), scores.argmax(axis=1)
    cross = loss(shares, scores)
    apart = cross + (shares * np.log(np.maximum(shares, _TINY))).sum(axis=1)
    equal, counts = theirs == ours, np.bincount(theirs, minlength=len(names))
    value = float(equal.mean())
    low, high = wilson(value, len(shares))
    return Agreement(
        rows=len(shares),
        value=value,
        low=low,
        high=high,
        most=names[int(counts.argmax())],
        majority=float(counts.max() / len(shares)),
        log_loss=float(cross.mean()),
        divergence=float(apart.mean()),
        labels=tuple(
            LabelAgreement(
                name,
                rows=int(counts[n]),
                given=int((ours == n).sum()),
                agreement=_mean(equal[theirs == n]),
                divergence=_mean(apart[theirs == n]),
            )
            for n, name in enumerate(names)
        ),
    )


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None
