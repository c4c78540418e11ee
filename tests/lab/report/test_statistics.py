"""Holm's correction and the paired bootstrap, as properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zicl.lab.report.cells import CellKey, MethodTraits, ReportCell, SeedRun
from zicl.lab.report.statistics import Bootstrap, PairedRuns, Term, contrast, draw_counts, holm, pair_runs

probabilities = st.lists(st.floats(0, 1), min_size=0, max_size=30)


@given(probabilities)
def test_holm_is_at_least_the_raw_value_and_at_most_one(p):
    corrected = holm(p)
    assert len(corrected) == len(p)
    assert all(raw <= value <= 1 for raw, value in zip(p, corrected, strict=True))


@given(probabilities)
def test_holm_keeps_the_order(p):
    corrected = holm(p)
    for i in range(len(p)):
        for j in range(len(p)):
            if p[i] < p[j]:
                assert corrected[i] <= corrected[j]
            if p[i] == p[j]:
                assert corrected[i] == corrected[j]


@given(probabilities, st.randoms())
def test_holm_does_not_depend_on_the_order_given(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    assert holm([p[i] for i in order]) == [holm(p)[i] for i in order]


@given(probabilities, st.floats(0, 1))
def test_holm_grows_with_the_number_of_comparisons(p, another):
    assert all(a <= b for a, b in zip(holm(p), holm([*p, another]), strict=False))


def cell(predictions, method="a", task="CR"):
    """A cell with a run for every seed; a row of ``predictions`` has 1 where the method is correct."""
    runs = []
    for seed, correct in predictions.items():
        numbers = np.flatnonzero(np.array(correct) >= 0)
        zeros = np.zeros(len(numbers), dtype=np.int64)
        scores = np.zeros((len(numbers), 2))
        predicted = 1 - np.array(correct)[numbers]
        runs.append(SeedRun(seed, numbers, zeros, predicted, zeros - 1, zeros - 1, scores[None], scores))
    return ReportCell(CellKey("m", "task", "channel", method, task), MethodTraits(method), ("x", "y"), tuple(runs))


# 1 correct, 0 wrong, -1 missing.
outcomes = st.integers(2, 25).flatmap(
    lambda size: st.tuples(
        st.dictionaries(st.sampled_from([1, 2, 3]), st.lists(st.integers(-1, 1), min_size=size, max_size=size)),
        st.dictionaries(st.sampled_from([None, 1, 2]), st.lists(st.integers(-1, 1), min_size=size, max_size=size)),
    )
)
FEW = Bootstrap(200)


@settings(max_examples=40)
@given(outcomes)
def test_a_method_does_not_differ_from_itself(both):
    first, _ = both
    found = pair_runs(cell(first), cell(first))
    if found is not None:
        value = FEW.compare([found])
        assert (value.estimate, value.low, value.high, value.p) == (0, 0, 0, 1)


@settings(max_examples=40)
@given(outcomes)
def test_the_interval_holds_the_estimate_and_the_other_way_round_is_its_mirror(both):
    one, other = cell(both[0]), cell(both[1])
    forward, back = pair_runs(one, other), pair_runs(other, one)
    assert (forward is None) == (back is None)
    if forward is None:
        return
    value, mirrored = FEW.compare([forward]), FEW.compare([back])
    assert value.low <= value.estimate <= value.high
    assert -100 <= value.low <= value.high <= 100
    assert 0 < value.p <= 1
    assert mirrored.estimate == -value.estimate
    assert (mirrored.low, mirrored.high) == pytest.approx((-value.high, -value.low))
    assert mirrored.p == pytest.approx(value.p)


def test_deterministic_methods_count_as_every_seed():
    found = pair_runs(cell({1: [1, 1, 0, -1], 2: [1, 0, 0, 1]}), cell({None: [0, 0, 0, 0]}))
    assert found.seeds == (1, 2)
    np.testing.assert_array_equal(found.difference, [[1, 1, 0, 0], [1, 0, 0, 1]])
    np.testing.assert_array_equal(found.present, [[1, 1, 1, 0], [1, 1, 1, 1]])
    assert FEW.compare([found]).estimate == pytest.approx(100 * 4 / 7)
    assert pair_runs(cell({1: [1, 1]}), cell({2: [1, 1]})) is None
    assert pair_runs(cell({1: [1, -1]}), cell({1: [-1, 1]})) is None


def test_a_weighted_sum_of_several_methods():
    gold, random = cell({1: [1, 1, 1, 0], 2: [1, 1, 0, 0]}), cell({1: [1, 0, 0, 0], 2: [0, 0, 0, 1]}, "b")
    base = cell({None: [0, 1, 0, -1]}, "c")
    found = contrast([Term(0.5, gold), Term(0.5, random), Term(-1, base)])
    assert found.seeds == (1, 2)
    np.testing.assert_allclose(found.difference, [[1, -0.5, 0.5], [0.5, -0.5, 0]])
    assert FEW.compare([found]).estimate == pytest.approx(100 / 6)
    wrong = contrast([Term(1, gold, lambda run: run.gold != run.predicted)])
    assert FEW.compare([wrong]).estimate == pytest.approx(100 * 3 / 8)


@given(st.integers(1, 40), st.integers(1, 30))
def test_every_draw_has_as_many_items_as_there_are(draws, size):
    counts = draw_counts(np.random.default_rng(draws), draws, size)
    assert counts.shape == (draws, size)
    assert (counts.sum(axis=1) == size).all()


def test_draws_made_in_parts_are_those_made_at_once(monkeypatch):
    found = pair_runs(cell({1: [1, 0, 0, 1, 1]}), cell({1: [0, 0, 1, 0, 0]}))
    at_once = Bootstrap(300).compare([found])
    monkeypatch.setattr("zicl.lab.report.statistics._AT_ONCE", 7)
    assert Bootstrap(300).compare([found]) == at_once


def test_the_bootstrap_repeats_and_finds_what_is_there():
    rng = np.random.default_rng(0)
    weak = cell({seed: (rng.random(400) < 0.6).astype(int) for seed in (1, 2, 3)})
    strong = cell({seed: (rng.random(400) < 0.8).astype(int) for seed in (1, 2, 3)})
    same = cell({seed: (rng.random(400) < 0.6).astype(int) for seed in (1, 2, 3)})
    found = Bootstrap().compare([pair_runs(strong, weak)])
    assert found == Bootstrap().compare([pair_runs(strong, weak)])
    assert found.low > 10
    assert found.high < 30
    # Small enough to survive Holm's correction over a thousand comparisons.
    assert found.p < 1e-5
    assert Bootstrap().compare([pair_runs(same, weak)]).p > 0.01


def test_the_interval_agrees_with_the_textbook():
    """One seed, independent examples: the standard error of a mean."""
    rng = np.random.default_rng(1)
    values = rng.choice([-1, 0, 1], size=800, p=[0.1, 0.6, 0.3]).astype(np.float32)[None]
    found = Bootstrap().compare([PairedRuns("CR", (None,), values, np.ones_like(values))])
    error = 100 * values.std(ddof=1) / np.sqrt(800)
    assert found.estimate == pytest.approx(100 * values.mean())
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.08)


def test_averages_weigh_tasks_equally():
    large = pair_runs(cell({None: [1] * 30}), cell({None: [0] * 30}))
    small = pair_runs(cell({None: [0, 0]}, task="MR"), cell({None: [0, 0]}, task="MR"))
    assert FEW.compare([large, small]).estimate == 50


def test_few_examples_that_differ_prove_little():
    """All draws may favour one method; the p-value is at least that of a sign test."""
    for differing, size in ((1, 1), (4, 8), (6, 20)):
        values = np.zeros((1, size), dtype=np.float32)
        values[0, :differing] = 1
        found = Bootstrap().compare([PairedRuns("CR", (None,), values, np.ones_like(values))])
        assert found.p >= min(1.0, 2.0 ** (1 - differing))
