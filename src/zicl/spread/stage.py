"""Stages of Ray Data that draw nothing over the command's own progress, and whose errors are told in our words."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ray.data import DataContext
from ray.exceptions import RayError

from zicl.spread.failure import own_error


@contextmanager
def stage() -> Iterator[None]:
    """Around making a data set and reading its results, which come in any order."""
    context, log = DataContext.get_current(), logging.getLogger("ray.data")
    before = context.enable_progress_bars, log.level
    context.enable_progress_bars = False
    log.setLevel(logging.ERROR)
    try:
        yield
    except RayError as error:
        raise own_error(error) from error
    finally:
        context.enable_progress_bars = before[0]
        log.setLevel(before[1])
