"""When a request that failed is sent again."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_FIRST, _LONGEST = 0.5, 60.0
# A server that asks for a longer pause than this is not waited for.
PATIENCE = 600.0
# Overload. Any other refusal would be repeated as it is, and so would two of a server's own faults: what it does not
# know how to do.
_BUSY, _UNABLE = frozenset({408, 409, 425, 429}), frozenset({501, 505})


def passing(status: int) -> bool:
    """Whether a request with this answer may succeed later.

    >>> [status for status in (400, 429, 501, 503, 524) if passing(status)]
    [429, 503, 524]
    """
    return status in _BUSY or (500 <= status < 600 and status not in _UNABLE)


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
