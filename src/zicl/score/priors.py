"""Batch calibration: the labels' shares over named texts, or given ones; frozen once they are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from zicl._util.progress import Report, silent
from zicl._util.random import rng
from zicl.config import Calibration
from zicl.exceptions import ConfigError
from zicl.score.ensemble import Ensemble

_LEAST = float(np.finfo(np.float64).tiny)


def learns_priors(settings: Calibration) -> bool:
    """Whether the shares are fitted, not given."""
    return settings.method == "batch" and settings.priors is None


def fit_priors(
    ensemble: Ensemble, settings: Calibration, texts: Sequence[str], seed: int, report: Report = silent
) -> Ensemble:
    """The shares measured on a seeded sample of the distinct texts."""
    if not learns_priors(settings):
        return ensemble
    distinct = sorted(set(texts))
    count = min(settings.texts, len(distinct))
    chosen = rng(seed, "texts to measure shares on").choice(len(distinct), count, replace=False)
    done = 0

    def advance(moved: int) -> None:
        nonlocal done
        done += moved
        report("measuring the labels' shares", done, count)

    advance(0)
    return ensemble.fitted([distinct[int(n)] for n in chosen], advance)


def with_given_priors(ensemble: Ensemble, settings: Calibration) -> Ensemble:
    """The shares the settings name, for an answer of one term: several have each a prior of their own."""
    if settings.priors is None:
        return ensemble
    if len(ensemble.names) > 1:
        raise ConfigError(
            f"priors were given, but the answer is joined from: {', '.join(ensemble.names)}",
            hint="fit them on texts, or use one inference without the encoder's opinion",
        )
    missing = sorted(set(ensemble.labels.names) ^ set(settings.priors))
    if missing:
        raise ConfigError(
            f"the priors and the labels differ in: {', '.join(missing)}",
            hint=f"give a share for each of: {', '.join(ensemble.labels.names)}",
        )
    return with_shares(ensemble, {ensemble.names[0]: settings.priors})


def shares(ensemble: Ensemble) -> dict[str, dict[str, float]]:
    """An ensemble's priors as shares by term and label."""
    names = ensemble.labels.names
    return {
        # A share that rounds to nothing would be minus infinity when it is read again.
        term: {name: max(float(share), _LEAST) for name, share in zip(names, np.exp(prior), strict=True)}
        for term, prior in ensemble.priors.items()
    }


def with_shares(ensemble: Ensemble, priors: Mapping[str, Mapping[str, float]]) -> Ensemble:
    """The ensemble with these shares."""
    names = ensemble.labels.names
    logs = {term: np.log([by_label[name] for name in names]) for term, by_label in priors.items()}
    return replace(ensemble, priors=logs)
