"""The process and its libraries: version, network, threads, logging."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version

__version__ = "0.1.0"


def go_offline() -> None:
    """Rule the network out, here and in the libraries underneath, which read these when they are imported."""
    os.environ["ZICL_OFFLINE"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"


# -- Keeping the libraries underneath from talking on the user's terminal.


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' own progress bars and advice off the terminal for a while."""
    from transformers.utils import logging as hf_logging

    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity(logging.ERROR)
    hf_logging.disable_progress_bar()
    try:
        # The bar of the GGUF reader asks nobody; it writes to whatever standard error is now.
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()


# -- How many threads this process computes with.


def use_threads(count: int | None) -> None:
    """Compute with so many, or as many as the libraries choose; results are equal to the byte only at equal numbers."""
    if count is None:
        return
    import faiss
    import torch

    torch.set_num_threads(count)
    faiss.omp_set_num_threads(count)


# -- The versions of what results depend on.


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """The installed version of each library, ``unknown`` where there is none."""
    return {name: _version(name) for name in libraries}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
