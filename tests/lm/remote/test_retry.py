"""Waiting: longer each time, spread, never shorter than the server asks for."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from hypothesis import given
from hypothesis import strategies as st

from zicl.lm.remote.client import retry_after, retry_delay

share = st.floats(0, 1, exclude_max=True)


@given(st.integers(0, 40), share, share)
def test_a_wait_lies_in_the_upper_half_of_a_doubling_time(attempt, one, other):
    most = min(60.0, 0.5 * 2**attempt)
    assert most / 2 <= retry_delay(attempt, one) < most + 1e-9
    assert retry_delay(attempt, one) <= retry_delay(attempt + 1, one)
    assert (retry_delay(attempt, one) < retry_delay(attempt, other)) == (one < other) or abs(one - other) < 1e-9


@given(st.integers(0, 10), share, st.floats(0, 1000))
def test_a_wait_is_never_shorter_than_asked_for(attempt, jitter, asked):
    assert retry_delay(attempt, jitter, asked) >= asked


@given(st.integers(0, 100_000))
def test_seconds_and_dates_are_read(seconds):
    now = datetime(2024, 5, 5, tzinfo=UTC)
    assert retry_after(str(seconds)) == seconds
    assert retry_after(format_datetime(now + timedelta(seconds=seconds), usegmt=True), now) == seconds


@given(st.text(max_size=20))
def test_anything_else_asks_for_nothing_or_for_no_negative_time(text):
    found = retry_after(text)
    assert found is None or not found < 0
