"""When a request that failed is sent again."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_FIRST, _LONGEST = 0.5, 60.0
# A server that asks for a longer pause than this is not waited for.
PATIENCE = 600.0
# Overload and passing faults. Any other refusal would be repeated as it is.
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


def delay(attempt: int, jitter: float, asked: float | None = None) -> float:
    """Seconds to wait after failed attempt number ``attempt`` (from 0); ``jitter`` is drawn from [0, 1).

    It doubles each time and is spread over its upper half, so that clients do not come back all at once. What the
    server ``asked`` for is the least.

    >>> delay(0, 0.0), delay(3, 0.5), delay(20, 0.0), delay(0, 0.5, asked=7)
    (0.25, 3.0, 30.0, 7.375)
    """
    spread = min(_LONGEST, _FIRST * 2.0 ** min(attempt, 30)) * (0.5 + jitter / 2)
    return spread if asked is None else asked + spread


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """The seconds in a Retry-After header, which holds a number or a date; None if there is none to read.

    >>> retry_after("3"), retry_after("soon")
    (3.0, None)
    """
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
