"""Which predictions are shown: a half of each kind, whatever the order, and a larger number keeps a smaller one."""

from hypothesis import given
from hypothesis import strategies as st

from zicl.lab.report.html.predictions import IN_ALL, choose, limit

right = st.dictionaries(st.text(max_size=4), st.booleans(), max_size=30)


@given(right, st.integers(0, 40))
def test_as_many_wrong_as_right_as_far_as_there_are(right, most):
    chosen = choose(right, most)
    assert len(chosen) == len(set(chosen)) == min(most, len(right))
    counts = [sum(right[name] is side for name in chosen) for side in (True, False)]
    there = [sum(value is side for value in right.values()) for side in (True, False)]
    for own, other, all_of_it in zip(counts, reversed(counts), there, strict=True):
        assert own >= min(all_of_it, other - 1)


@given(right, st.integers(0, 40), st.randoms())
def test_no_order_matters_and_more_keeps_what_was_there(right, most, random):
    shuffled = list(right.items())
    random.shuffle(shuffled)
    assert choose(dict(shuffled), most) == choose(right, most)
    assert choose(right, most + 1)[:most] == choose(right, most)


@given(st.integers(0, 100_000))
def test_the_page_stays_small_unless_asked(cells):
    assert limit(cells, None) * cells <= max(IN_ALL, cells)
    assert limit(cells, 0) == 0
