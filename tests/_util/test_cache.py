"""The bounded cache: its limits, and what is dropped first."""

from hypothesis import given
from hypothesis import strategies as st

from zicl._util.cache import BoundedCache


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=60),
    st.integers(1, 6),
    st.one_of(st.none(), st.integers(0, 100)),
)
def test_limits_hold_and_the_latest_values_are_kept(puts, max_items, max_weight):
    cache, order = BoundedCache(max_items, max_weight), []
    for key, heavy in puts:
        cache.put(key, (key, heavy), heavy)
        order = [kept for kept in order if kept[0] != key]
        if max_weight is None or heavy <= max_weight:
            order.append((key, heavy))
        while len(order) > max_items or (max_weight is not None and sum(h for _, h in order) > max_weight):
            order.pop(0)
        assert len(cache) == len(order) <= max_items
        assert cache.weight == sum(h for _, h in order)
    for key, heavy in order:
        assert cache.get(key) == (key, heavy)


def test_a_value_that_was_read_stays():
    cache = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_an_earlier_value_does_not_outlive_one_too_heavy_to_keep():
    cache = BoundedCache(2, max_weight=5)
    cache.put("a", 1, 1)
    cache.put("a", 2, 6)
    assert (cache.get("a"), cache.weight) == (None, 0)
