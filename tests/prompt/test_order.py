"""In which order demonstrations stand."""

from hypothesis import given
from hypothesis import strategies as st

from zicl.prompt.builder import demonstration_order


@given(st.integers(0, 64), st.integers(0, 100), st.text(max_size=8))
def test_every_order_has_every_demonstration_once(count, seed, item):
    for order in ("nearest-last", "nearest-first", "shuffled"):
        assert sorted(demonstration_order(order, count, seed, item)) == list(range(count))
    assert demonstration_order("shuffled", count, seed, item) == demonstration_order("shuffled", count, seed, item)


def test_shuffles_depend_on_seed_and_item():
    assert demonstration_order("shuffled", 16, 0, "a") != demonstration_order("shuffled", 16, 1, "a")
    assert demonstration_order("shuffled", 16, 0, "a") != demonstration_order("shuffled", 16, 0, "b")
