"""The meter: usage is counted, and the limit is never exceeded, in any order of events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from zicl.exceptions import BudgetError
from zicl.lm.remote.budget import UsageMeter
from zicl.lm.remote.settings import RemoteSettings

request = st.tuples(st.integers(1, 5000), st.sampled_from(["answered", "refused", "lost", "under way"]))


@given(st.lists(request, max_size=30), st.floats(0.001, 10))
def test_the_limit_holds_with_any_number_under_way(requests, limit):
    meter = UsageMeter(1000.0, 500.0, limit)
    expected = under_way = 0.0
    for tokens, end in requests:
        price = meter.price(tokens, 1)
        try:
            reserved = meter.reserve(tokens, 1)
        except BudgetError:
            assert expected + under_way + price > limit - 1e-9
            continue
        if end == "answered":
            meter.answered(reserved, tokens, 1)
        elif end == "refused":
            meter.refused(reserved)
        elif end == "lost":
            meter.lost(reserved)
        expected += price if end in ("answered", "lost") else 0.0
        under_way += price if end == "under way" else 0.0
        assert meter.usage.cost == pytest.approx(expected)
        assert expected + under_way <= limit + 1e-9


def test_without_prices_tokens_are_counted_and_nothing_costs():
    meter = UsageMeter()
    meter.answered(meter.reserve(10, 1), 12, 1)
    meter.lost(meter.reserve(10, 1))
    meter.from_cache(3)
    spent = meter.usage
    assert (spent.requests, spent.tokens_in, spent.tokens_out, spent.cached, spent.cost) == (1, 12, 1, 3, None)
    assert "cost" not in str(spent)


def test_a_limit_needs_a_price():
    with pytest.raises(ValidationError, match="max_cost needs price_in"):
        RemoteSettings(max_cost=1)
    with pytest.raises(ValidationError):
        RemoteSettings(colour="red")
