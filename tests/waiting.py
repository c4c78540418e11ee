"""Wait for a condition, with a bound that a busy machine does not reach: it only ends a test that would hang."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WAIT_SECONDS = 300


def wait_until(condition: Callable[[], Any], pause: float = 0.01) -> Any:
    """Return the value of ``condition`` once it is true."""
    end = time.monotonic() + WAIT_SECONDS
    while not (value := condition()):
        assert time.monotonic() < end, f"it did not happen within {WAIT_SECONDS} seconds"
        time.sleep(pause)
    return value
