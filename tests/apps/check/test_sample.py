"""Stratified samples: every stratum, no repetition, weights that sum to the number of rows."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apps.check.reports import LABELS, predictions
from zicl.apps.check.predictions import OutputPrediction
from zicl.apps.check.sample import allocate, stratified_sample
from zicl.exceptions import UsageError

many = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])), min_size=1).map(
    lambda rows: [OutputPrediction(f"r{n}", f"Report {n}.", label, margin) for n, (label, margin) in enumerate(rows)]
)


@given(many, st.integers(3, 60), st.integers(0, 3), st.randoms(use_true_random=False))
def test_samples_are_complete_and_repeatable(rows, wanted, seed, random):
    sheet = stratified_sample(rows, LABELS, wanted, seed)
    assert sum(row.weight for row in sheet.rows) == pytest.approx(len(rows))
    ids = [row.prediction.id for row in sheet.rows]
    assert len(set(ids)) == len(ids) == min(wanted, len(rows))
    assert {row.prediction.predicted for row in sheet.rows} == {row.predicted for row in rows}
    assert stratified_sample(random.sample(rows, len(rows)), LABELS, wanted, seed) == sheet


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 100))
def test_allocation_is_equal_as_far_as_it_can_be(sizes, rows):
    given_ = allocate(sizes, rows)
    assert sum(given_.values()) == min(rows, sum(sizes.values()))
    open_ = [count for name, count in given_.items() if count < sizes[name]]
    assert all(count <= sizes[name] for name, count in given_.items())
    assert not open_ or max(given_.values()) - min(open_) <= 1


def test_strata_are_labels_and_thirds_of_the_margins():
    sheet = stratified_sample(predictions(900), LABELS, 90, seed=1)
    # No square is 2 modulo 3: two labels are predicted at all.
    assert set(Counter(row.stratum for row in sheet.rows).values()) == {15}
    by_stratum = {row.stratum: [] for row in sheet.rows}
    for row in sheet.rows:
        by_stratum[row.stratum].append(row.prediction.margin)
    assert sorted(by_stratum) == [f"{label} {band}/3" for label in ("calm", "stormy") for band in (1, 2, 3)]
    assert max(by_stratum["calm 1/3"]) <= min(by_stratum["calm 2/3"])
    assert max(by_stratum["calm 2/3"]) <= min(by_stratum["calm 3/3"])
    assert stratified_sample(predictions(900), LABELS, 90, seed=2) != sheet
    with pytest.raises(UsageError, match="1 row cannot represent 2"):
        stratified_sample(predictions(900), LABELS, 1)
