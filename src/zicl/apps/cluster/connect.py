"""Connect to a Ray cluster, decide how many workers it gets, and translate its errors."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from zicl.exceptions import ClusterError, ConfigError, ZICLError

# As an address: the cluster that RAY_ADDRESS names, else a new one on this machine that ends with the command.
_DEFAULT_ADDRESS = "ray"
_CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True)
class Cluster:
    """The number of workers on a cluster, and the threads and GPUs of each."""

    workers: int
    threads: int
    gpus: int = 0


@contextmanager
def connect(address: str, *, workers: int | None = None, threads: int | None = None) -> Iterator[Cluster]:
    """Connect to a cluster, or start one on this machine; workers end with the context."""
    for name, value in (("workers", workers), ("threads", threads)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} is {value}; expected at least 1")
    named = os.environ.get("RAY_ADDRESS") if address == _DEFAULT_ADDRESS else address
    ray = _import_ray(local=named is None)
    try:
        if named is not None:
            _check_reachable(named)
        ray.init(
            address=named or "local",
            namespace="zicl",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:
        # Any exception: Ray raises plain ones where a node does not start in time.
        raise ClusterError(
            f"the Ray cluster {named or address!r} was not reached: {short_message(error)}",
            hint="start one with 'ray start --head --disable-usage-stats' and give its address, or use --on ray",
        ) from error
    try:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        yield worker_count(nodes, workers=workers, threads=threads)
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Open a connection first: Ray waits for minutes where no cluster listens."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT):
            pass


def _import_ray(*, local: bool) -> Any:
    # Ray reads these when it is imported or starts a cluster. It must not send usage statistics.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Otherwise Ray hides the GPUs from workers that requested none, and warns about it.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if local:
        # Listen on loopback only, which is Ray's default on Windows and macOS alone.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ClusterError("Ray is not installed", hint="pip install 'zicl[ray]', on every machine") from error
    return ray


def worker_count(
    nodes: Sequence[dict[str, float]], *, workers: int | None = None, threads: int | None = None
) -> Cluster:
    """Return the workers that fit: one per GPU if there are any, else one per machine with all its cores.

    ``threads`` and ``workers`` override the defaults; the smallest machine sets the default number of threads.

    >>> worker_count([{"CPU": 8.0}, {"CPU": 4.0}])
    Cluster(workers=3, threads=4, gpus=0)
    >>> worker_count([{"CPU": 16.0, "GPU": 4.0}, {"CPU": 64.0}])
    Cluster(workers=4, threads=4, gpus=1)
    """
    with_gpus = [node for node in nodes if node.get("GPU", 0) >= 1]
    sizes = [(int(node.get("CPU", 0)), int(node.get("GPU", 0))) for node in with_gpus or nodes]
    sizes = [(cores, gpus) for cores, gpus in sizes if cores]
    if not sizes:
        raise ClusterError("the cluster has no CPU to work on", hint="see 'ray status'")
    per_worker = threads or max(1, min(cores // max(1, gpus) for cores, gpus in sizes))
    capacity = sum(min(cores // per_worker, gpus) if with_gpus else cores // per_worker for cores, gpus in sizes)
    count = workers or max(1, capacity)
    if count > capacity:
        raise ConfigError(
            f"{count} workers with {per_worker} threads{' and a GPU' if with_gpus else ''} each do not fit the "
            f"cluster: it has room for {capacity}",
            hint="request fewer or smaller workers, e.g. --on ray,workers=2,threads=1, or add machines",
        )
    return Cluster(count, per_worker, gpus=1 if with_gpus else 0)


def cluster_error(error: BaseException) -> BaseException:
    """Return the zicl error that a worker raised and Ray wrapped; for any other error one with Ray's message."""
    inner: BaseException | None = error
    while inner is not None:
        cause = getattr(inner, "cause", None)
        if isinstance(cause, BaseException):
            # Check this before the class: Ray's wrapper has our class too, with a traceback as its message.
            inner = cause
        elif isinstance(inner, ZICLError):
            return inner
        else:
            inner = inner.__cause__
    return ClusterError(f"the cluster failed: {short_message(error)}", hint="see the logs of the cluster")


def short_message(error: BaseException) -> str:
    r"""Return an error's message on one line; of a long one the end, where Ray gives the reason.

    >>> short_message(ValueError("a\n b")), short_message(ValueError())
    ('a b', 'ValueError')
    """
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 400 else f"…{words[-400:]}"
