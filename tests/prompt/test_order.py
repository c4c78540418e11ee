"""In which order demonstrations stand."""

from hypothesis import given
from hypothesis import strategies as st

from zicl.prompt.order import standing


@given(st.integers(0, 64), st.integers(0, 100), st.text(max_size=8))
def test_every_order_has_every_demonstration_once(count, seed, item):
    for order in ("nearest-last", "nearest-first", "shuffled"):
        assert sorted(standing(order, count, seed, item)) == list(range(count))
    assert standing("shuffled", count, seed, item) == standing("shuffled", count, seed, item)


def test_shuffles_depend_on_seed_and_item():
    assert standing("shuffled", 16, 0, "a") != standing("shuffled", 16, 1, "a")
    assert standing("shuffled", 16, 0, "a") != standing("shuffled", 16, 0, "b")
