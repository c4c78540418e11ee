"""Stored predictions: as many wrong as correct ones in a stable order, demonstrations nearest first."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.lab.report.html.predictions import PER_PAGE, CellRows, cell_limit, choose

outcomes = st.dictionaries(st.text(max_size=4), st.booleans(), max_size=30)


@given(outcomes, st.integers(0, 40))
def test_as_many_wrong_as_right_as_far_as_there_are(right, most):
    chosen = choose(right, most)
    assert len(chosen) == len(set(chosen)) == min(most, len(right))
    counts = [sum(right[name] is side for name in chosen) for side in (True, False)]
    available = [sum(value is side for value in right.values()) for side in (True, False)]
    for count, other, most in zip(counts, reversed(counts), available, strict=True):
        assert count >= min(most, other - 1)


@given(outcomes, st.integers(0, 40), st.randoms())
def test_the_order_does_not_matter_and_a_larger_limit_keeps_a_smaller_one(right, most, random):
    shuffled = list(right.items())
    random.shuffle(shuffled)
    assert choose(dict(shuffled), most) == choose(right, most)
    assert choose(right, most + 1)[:most] == choose(right, most)


@given(st.integers(0, 100_000))
def test_the_page_stays_small_by_default(cells):
    assert cell_limit(cells, None) * cells <= max(PER_PAGE, cells)
    assert cell_limit(cells, 0) == 0


@pytest.mark.parametrize(
    ("similarities", "shown"),
    [([0.9, 0.5, 0.1], "abc"), ([0.1, 0.5, 0.9], "cba"), ([0.5, 0.1, 0.9], "cab"), ([None] * 3, "abc")],
)
def test_demonstrations_are_nearest_first_in_any_order_of_the_prompt(similarities, shown):
    columns = {
        "demos": list("abc"),
        "demo_words": list("xyz"),
        "demo_labels": list("xyz"),
        "similarities": similarities,
    }
    rows = CellRows(pa.Table.from_pylist([{**columns, "kept": 3, "input_cut": False}]), {"one": 0})
    demos, _ = rows.demos("one")
    assert "".join(demo.id for demo in demos) == shown
