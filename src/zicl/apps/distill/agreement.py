"""Measure how well a distilled classifier repeats its teacher, on texts that it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl.apps.check.score import wilson_interval
from zicl.apps.distill.train import cross_entropy
from zicl.score.calibration import Scores

_TINY = 1e-300


@dataclass(frozen=True)
class LabelAgreement:
    """Agreement on one label: the teacher predicted it for ``rows`` texts, the student for ``given``.

    ``agreement`` is the proportion of the teacher's rows that get the same label, ``divergence`` their mean
    Kullback-Leibler divergence; both are None if the teacher predicted the label for no text.
    """

    label: str
    rows: int
    given: int
    agreement: float | None
    divergence: float | None


@dataclass(frozen=True)
class Agreement:
    """The proportion of equal labels, with a 95 % interval, and the distance between the probabilities.

    ``majority`` is the agreement of always predicting ``most``, the teacher's most frequent label: the baseline that
    ``value`` has to exceed.
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
    def from_dict(cls, values: Mapping[str, Any]) -> Agreement:
        """Return what ``dataclasses.asdict`` gave."""
        return cls(**{**values, "labels": tuple(LabelAgreement(**entry) for entry in values["labels"])})


def measure_agreement(names: Sequence[str], probabilities: Scores, scores: Scores) -> Agreement:
    """Compare the teacher's probabilities with the student's scores, one row per text."""
    teacher, student = probabilities.argmax(axis=1), scores.argmax(axis=1)
    losses = cross_entropy(probabilities, scores)
    divergences = losses + (probabilities * np.log(np.maximum(probabilities, _TINY))).sum(axis=1)
    equal, counts = teacher == student, np.bincount(teacher, minlength=len(names))
    value = float(equal.mean())
    low, high = wilson_interval(value, len(probabilities))
    return Agreement(
        rows=len(probabilities),
        value=value,
        low=low,
        high=high,
        most=names[int(counts.argmax())],
        majority=float(counts.max() / len(probabilities)),
        log_loss=float(losses.mean()),
        divergence=float(divergences.mean()),
        labels=tuple(
            LabelAgreement(
                name,
                rows=int(counts[n]),
                given=int((student == n).sum()),
                agreement=_mean(equal[teacher == n]),
                divergence=_mean(divergences[teacher == n]),
            )
            for n, name in enumerate(names)
        ),
    )


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None
