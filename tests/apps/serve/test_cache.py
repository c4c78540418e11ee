from hypothesis import given
from hypothesis import strategies as st

from zicl._util.cache import BoundedCache


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=60),
    st.integers(1, 6),
    st.one_of(st.none(), st.integers(0, 100)),
)
def test_it_is_bounded_and_keeps_what_was_asked_for_last(puts, most, weight):
    cache, order = BoundedCache(most, weight), []
    for key, heavy in puts:
        cache.put(key, (key, heavy), heavy)
        order = [known for known in order if known[0] != key]
        if weight is None or heavy <= weight:
            order.append((key, heavy))
        while len(order) > most or (weight is not None and sum(h for _, h in order) > weight):
            order.pop(0)
        assert len(cache) == len(order) <= most
        assert cache.weight == sum(h for _, h in order)
    for key, heavy in order:
        assert cache.get(key) == (key, heavy)


def test_what_is_asked_for_stays():
    cache = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_an_earlier_value_does_not_outlive_one_too_heavy_to_keep():
    cache = BoundedCache(2, weight=5)
    cache.put("a", 1, 1)
    cache.put("a", 2, 6)
    assert (cache.get("a"), cache.weight) == (None, 0)
