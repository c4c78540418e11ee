"""Ray Data, set up as all its stages here need it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ray.data import DataContext
from ray.exceptions import RayTaskError

from zicl.exceptions import ZICLError


@contextmanager
def in_order() -> Iterator[None]:
    """Results come in the order of what was given, and nothing is drawn over the command's own progress."""
    context, log = DataContext.get_current(), logging.getLogger("ray.data")
    before = context.execution_options.preserve_order, context.enable_progress_bars, log.level
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    log.setLevel(logging.ERROR)
    try:
        yield
    except RayTaskError as error:
        raise _own(error) from None
    finally:
        context.execution_options.preserve_order, context.enable_progress_bars = before[:2]
        log.setLevel(before[2])


def _own(error: BaseException) -> BaseException:
    """The error that a stage of ours raised, which Ray Data wraps in its own."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, ZICLError):
        inner = getattr(inner, "cause", None) or inner.__cause__
    return inner or error
