"""A Ray cluster: connecting to it, and how many workers of how many threads it holds."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from zicl.apps.cluster.failure import in_short
from zicl.exceptions import ClusterError, ConfigError

# As an address: the one that RAY_ADDRESS names; else a cluster of this machine alone, which ends with the command.
ANY = "ray"
_REACHED_WITHIN = 10.0


@dataclass(frozen=True)
class Cluster:
    """How work is spread: so many workers, each with so many threads, and a GPU where there are any."""

    workers: int
    threads: int
    gpus: int = 0


@contextmanager
def connected(address: str, *, workers: int | None = None, threads: int | None = None) -> Iterator[Cluster]:
    """A cluster while it is used; its workers end with the command."""
    for name, value in (("--workers", workers), ("--threads", threads)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} {value}: expected at least 1")
    named = os.environ.get("RAY_ADDRESS") if address == ANY else address
    ray = _ray(alone=named is None)
    try:
        if named is not None:
            _reach(named)
        ray.init(
            address=named or "local",
            namespace="zicl",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:
        # Whatever it is: Ray raises exceptions of no class of its own where a node does not start in time.
        raise ClusterError(
            f"the Ray cluster {named or address!r} was not reached: {in_short(error)}",
            hint="start one with 'ray start --head --disable-usage-stats' and give its address, or use --on ray",
        ) from error
    try:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        yield sized(nodes, workers=workers, threads=threads)
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Knock at a cluster's door: Ray itself would wait for minutes where nobody is."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_WITHIN):
            pass


def _ray(*, alone: bool) -> Any:
    # Read by Ray when it is imported or starts a cluster: it must not report to anyone.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray would otherwise hide the GPUs from workers that asked for none, and warn of it.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if alone:
        # On Windows and macOS Ray keeps to loopback unless told otherwise; so does the one that we start, everywhere.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ClusterError("Ray is not installed", hint="pip install 'zicl[ray]', on every machine") from error
    return ray


def sized(nodes: Sequence[dict[str, float]], *, workers: int | None = None, threads: int | None = None) -> Cluster:
    """Workers that fit: one a GPU where there are any, else one a machine with all its cores, unless told otherwise.

    >>> sized([{"CPU": 8.0}, {"CPU": 4.0}])
    Cluster(workers=3, threads=4, gpus=0)
    >>> sized([{"CPU": 16.0, "GPU": 4.0}, {"CPU": 64.0}])
    Cluster(workers=4, threads=4, gpus=1)
    """
    with_cards = [node for node in nodes if node.get("GPU", 0) >= 1]
    sizes = [(int(node.get("CPU", 0)), int(node.get("GPU", 0))) for node in with_cards or nodes]
    sizes = [(cores, cards) for cores, cards in sizes if cores]
    if not sizes:
        raise ClusterError("the cluster has no CPU to work on", hint="see 'ray status'")
    chosen = threads or max(1, min(cores // max(1, cards) for cores, cards in sizes))
    fitting = sum(min(cores // chosen, cards) if with_cards else cores // chosen for cores, cards in sizes)
    wanted = workers or max(1, fitting)
    if wanted > fitting:
        raise ConfigError(
            f"{wanted} workers with {chosen} threads{' and a GPU' if with_cards else ''} each do not fit the cluster: "
            f"it has room for {fitting}",
            hint="ask for fewer with --workers, for smaller ones with --threads, or add machines",
        )
    return Cluster(wanted, chosen, gpus=1 if with_cards else 0)
