"""Variance components: draws of labels apart from draws of sentences."""

from __future__ import annotations

import numpy as np
import pytest

from zicl.lab.report.cells import CellKey, MethodTraits, ReportCell, SeedRun
from zicl.lab.study.order import variance_components


def cell(right):
    """Return a cell with one run per seed; ``right`` says which predictions are correct."""
    nothing = np.zeros(0)
    runs = []
    for seed, row in enumerate(right):
        gold, numbers = np.zeros(len(row), dtype=np.int64), np.arange(len(row))
        runs.append(SeedRun(seed, numbers, gold, 1 - np.asarray(row), gold, gold, nothing, nothing))
    return ReportCell(CellKey("m", "task", "channel", "x", "T"), MethodTraits("X"), ("a", "b"), tuple(runs))


def test_variance_over_labels_and_over_sentences_is_kept_apart():
    few, many = [1] * 4 + [0] * 6, [1] * 8 + [0] * 2
    components = variance_components([[cell([few, few]), cell([many, many])]])
    # Four of ten examples change, each independently: a variance of 1/2 each.
    assert components.labels.estimate == pytest.approx(100 * np.sqrt(4 * 0.5) / 10)
    assert components.sentences.estimate == 0
    assert components.difference.estimate == pytest.approx(components.labels.estimate)
    assert components.labels.low <= components.labels.estimate <= components.labels.high
    swapped = variance_components([[cell([few, many]), cell([few, many])]])
    assert swapped.sentences.estimate == pytest.approx(components.labels.estimate)
    assert swapped.labels.estimate == 0


@pytest.mark.parametrize("examples", [40, 400])
def test_the_interval_contains_the_deviation(examples):
    """Labels flip every example independently, sentences none."""
    draw = np.random.default_rng(3)
    right = [draw.integers(2, size=examples) for _ in range(8)]
    components = variance_components([[cell([row, row]) for row in right]])
    assert components.labels.estimate == pytest.approx(100 * np.sqrt(0.25 / examples), rel=0.05)
    assert components.sentences.high == 0
    width = components.labels.high - components.labels.low
    assert components.labels.low + 0.2 * width < components.labels.estimate < components.labels.high - 0.2 * width


def test_fewer_than_two_draws_give_nothing():
    assert variance_components([[cell([[1, 0]]), cell([[1, 0]])]]) is None
    assert variance_components([[cell([[1, 0], [0, 1]])]]) is None
    assert variance_components([]) is None
    assert variance_components([[cell([[1], [0]]), cell([[1], [1]])]]) is None
