"""Settings of this process and its libraries: version, network, threads, log output."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from zicl.exceptions import MissingExtraError

__version__ = "0.1.0"


def go_offline() -> None:
    """Forbid network access, here and in the Hugging Face libraries, which read these variables when imported."""
    os.environ["ZICL_OFFLINE"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"


def use_threads(count: int | None) -> None:
    """Set the number of threads of torch, FAISS and models loaded by onnxruntime later, or keep their defaults.

    Results are bit-identical only for equal numbers of threads.
    """
    if count is None:
        return
    # Read by thread_count, for libraries that are told it when a model is loaded.
    os.environ["OMP_NUM_THREADS"] = str(count)
    import faiss
    import torch

    torch.set_num_threads(count)
    faiss.omp_set_num_threads(count)


def thread_count() -> int:
    """Return ``OMP_NUM_THREADS``, which ``use_threads`` sets and torch goes by, else one per core."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    # The cores that this process may use, as in a container; other systems than Linux do not tell.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the progress bars and warnings of transformers within the block."""
    from transformers.utils import logging as hf_logging

    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity(logging.ERROR)
    hf_logging.disable_progress_bar()
    try:
        # The progress bar of the GGUF reader has no switch: it always writes to standard error.
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()


def require_extra(extra: str, what: str, *packages: str) -> None:
    """Check that the packages of an optional extra are installed, or name the pip command that installs them."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{what} needs packages that are not installed: {', '.join(missing)}", hint=f'pip install "zicl[{extra}]"'
        )


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each library, or ``unknown``."""
    installed = {}
    for name in libraries:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = "unknown"
    return installed
