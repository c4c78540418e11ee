"""Draws of labels apart from draws of sentences."""

from __future__ import annotations

import numpy as np
import pytest

from zicl.lab.report.cells import CellKey, MethodTraits, ReportCell, SeedRun
from zicl.lab.study.order import variance_components


def cell(right):
    """A method whose runs, one a seed, are right on some examples."""
    nothing = np.zeros(0)
    runs = []
    for seed, row in enumerate(right):
        gold, numbers = np.zeros(len(row), dtype=np.int64), np.arange(len(row))
        runs.append(SeedRun(seed, numbers, gold, 1 - np.asarray(row), gold, gold, nothing, nothing))
    return ReportCell(CellKey("m", "task", "channel", "x", "T"), MethodTraits("X"), ("a", "b"), tuple(runs))


def test_what_only_labels_change_is_theirs():
    few, many = [1] * 4 + [0] * 6, [1] * 8 + [0] * 2
    found = variance_components([[cell([few, few]), cell([many, many])]])
    # Four examples of ten change, each by itself: a variance of 1/2 each.
    assert found.labels.estimate == pytest.approx(100 * np.sqrt(4 * 0.5) / 10)
    assert found.sentences.estimate == 0
    assert found.difference.estimate == pytest.approx(found.labels.estimate)
    assert found.labels.low <= found.labels.estimate <= found.labels.high
    turned = variance_components([[cell([few, many]), cell([few, many])]])
    assert turned.sentences.estimate == pytest.approx(found.labels.estimate)
    assert turned.labels.estimate == 0


@pytest.mark.parametrize("examples", [40, 400])
def test_the_interval_lies_around_the_deviation(examples):
    """Labels flip every example by itself, sentences none."""
    draw = np.random.default_rng(3)
    right = [draw.integers(2, size=examples) for _ in range(8)]
    found = variance_components([[cell([row, row]) for row in right]])
    assert found.labels.estimate == pytest.approx(100 * np.sqrt(0.25 / examples), rel=0.05)
    assert found.sentences.high == 0
    width = found.labels.high - found.labels.low
    assert found.labels.low + 0.2 * width < found.labels.estimate < found.labels.high - 0.2 * width


def test_one_draw_of_either_says_nothing():
    assert variance_components([[cell([[1, 0]]), cell([[1, 0]])]]) is None
    assert variance_components([[cell([[1, 0], [0, 1]])]]) is None
    assert variance_components([]) is None
    assert variance_components([[cell([[1], [0]]), cell([[1], [1]])]]) is None
