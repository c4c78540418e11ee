"""Stages of Ray Data that draw nothing over the command's own progress, and whose errors are told in our words."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ray.data import DataContext
from ray.exceptions import RayError

from zicl.apps.cluster.failure import own_error

_SETTINGS: Mapping[str, Any] = {
    "enable_progress_bars": False,
    # Ray's own wrapper is sent without what it wraps.
    "raise_original_map_exception": True,
    # A large piece on a slow machine, or a wait for room, is no reason to end.
    "execution_no_progress_timeout_s": -1,
    # A piece comes back as one block, whatever its size.
    "target_max_block_size": 1 << 60,
}


@contextmanager
def stage() -> Iterator[None]:
    """Around making a data set and reading its results, which come in any order."""
    context, log = DataContext.get_current(), logging.getLogger("ray.data")
    before, level = {name: getattr(context, name) for name in _SETTINGS if hasattr(context, name)}, log.level
    _set(context, {name: _SETTINGS[name] for name in before})
    log.setLevel(logging.ERROR)
    try:
        yield
    except RayError as error:
        raise own_error(error) from error
    finally:
        _set(context, before)
        log.setLevel(level)


def _set(context: DataContext, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(context, name, value)
