"""The wait before a retry: longer each time, with jitter, and never shorter than the server asks for."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from hypothesis import given
from hypothesis import strategies as st
from tenacity import Future, RetryCallState

from zicl.lm.remote.client import _TransientError, _wait, retry_after


def wait(attempt, pause=0.0):
    """The seconds after failed attempt number ``attempt``, from 1."""
    state = RetryCallState(None, None, (), {})
    state.attempt_number = attempt
    state.outcome = Future.construct(attempt, _TransientError("busy", retry_after=pause), has_exception=True)
    return _wait(state)


@given(st.integers(1, 40))
def test_a_wait_lies_in_the_upper_half_of_a_doubling_time(attempt):
    longest = min(60.0, 0.5 * 2 ** (attempt - 1))
    assert longest / 2 <= wait(attempt) <= longest


def test_waits_are_random():
    assert len({wait(5) for _ in range(20)}) > 15


@given(st.integers(1, 10), st.floats(0, 1000))
def test_a_wait_is_added_to_what_the_server_asks_for(attempt, pause):
    assert pause < wait(attempt, pause) <= pause + 60


@given(st.integers(0, 100_000))
def test_seconds_and_dates_are_read(seconds):
    now = datetime(2024, 5, 5, tzinfo=UTC)
    assert retry_after(str(seconds)) == seconds
    assert retry_after(format_datetime(now + timedelta(seconds=seconds), usegmt=True), now) == seconds


@given(st.text(max_size=20))
def test_any_other_header_is_no_time_or_not_a_negative_one(text):
    seconds = retry_after(text)
    assert seconds is None or not seconds < 0
