"""A Ray cluster: connecting to it, and how many workers of how many threads it holds."""

from __future__ import annotations

import logging
import math
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
def connected(
    address: str, *, workers: int | None = None, threads: int | None = None, reserved: int = 0
) -> Iterator[Cluster]:
    """A cluster while it is used; its workers end with the command. ``reserved`` cores are for something else."""
    for name, value in (("--workers", workers), ("--threads", threads)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} {value}: expected at least 1")
    ray = _ray()
    named = os.environ.get("RAY_ADDRESS") if address == ANY else address
    # One that this command starts listens on this machine only.
    place = {"address": named} if named else {"address": "local", "_node_ip_address": "127.0.0.1"}
    try:
        if named:
            _reach(named)
        ray.init(**place, namespace="zicl", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClusterError(
            f"the Ray cluster {named or address!r} was not reached: {str(error).splitlines()[0]}",
            hint="start one with 'ray start --head --disable-usage-stats' and give its address, or use --on ray",
        ) from error
    try:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        yield sized(nodes, workers=workers, threads=threads, reserved=reserved)
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Knock at a cluster's door: Ray itself would wait for minutes where nobody is."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_WITHIN):
            pass


def _ray() -> Any:
    # Read by Ray when it starts a cluster, and so set before it is imported: it must not report to anyone.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray would otherwise hide the GPUs from workers that asked for none, and warn of it.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise ClusterError("Ray is not installed", hint="pip install 'zicl[ray]', on every machine") from error
    return ray


def sized(
    nodes: Sequence[dict[str, float]], *, workers: int | None = None, threads: int | None = None, reserved: int = 0
) -> Cluster:
    """Workers that fit beside what is ``reserved``.

    By default one a GPU, else one a machine, with as many threads as the smallest machine has cores.

    >>> sized([{"CPU": 8.0}, {"CPU": 4.0}])
    Cluster(workers=3, threads=4, gpus=0)
    >>> sized([{"CPU": 16.0, "GPU": 4.0}], threads=2)
    Cluster(workers=4, threads=2, gpus=1)
    """
    sizes = [(int(node.get("CPU", 0)), int(node.get("GPU", 0))) for node in nodes if node.get("CPU", 0) >= 1]
    if not sizes:
        raise ClusterError("the cluster has no CPU to work on", hint="see 'ray status'")
    cards = sum(gpus for _, gpus in sizes)
    most = max(cores for cores, _ in sizes)
    chosen = threads or max(1, min(cores // gpus if cards else cores for cores, gpus in sizes if gpus or not cards))
    if chosen > most:
        raise ConfigError(
            f"a worker with {chosen} threads fits no machine of the cluster: the largest has {most} cores",
            hint=f"--threads {most} or fewer",
        )
    fitting = cards or sum(cores // chosen for cores, _ in sizes) - math.ceil(reserved / chosen)
    if (workers or max(1, fitting)) * chosen + reserved > sum(cores for cores, _ in sizes):
        raise ConfigError(
            f"{workers or 1} workers of {chosen} threads and {reserved} searchers are more than the cluster's "
            f"{sum(cores for cores, _ in sizes)} cores",
            hint="ask for fewer, or add machines to the cluster",
        )
    return Cluster(workers or max(1, fitting), chosen, gpus=1 if cards else 0)
