"""Workers as Ray actors. Ray itself restarts none: the pool knows better whether one is still needed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from zicl.spread.cluster import Cluster
from zicl.spread.pool import Call, WorkerLostError


class RayCrew:
    """Workers of one class, made with the same arguments, on whichever machines have room for them.

    The class has a method ``ready()`` that loads, and one for each call, with its argument.
    """

    def __init__(self, worker: type, arguments: Sequence[Any], cluster: Cluster) -> None:
        self._arguments = [ray.put(argument) for argument in arguments]
        self._class: Any = ray.remote(worker).options(
            num_cpus=cluster.threads,
            num_gpus=cluster.gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )

    def hire(self) -> Any:
        """A new actor."""
        return self._class.remote(*self._arguments)

    def ready(self, worker: Any) -> Any:
        """The future of its having loaded."""
        return worker.ready.remote()

    def start(self, worker: Any, call: Call) -> Any:
        """The future of a call's answer."""
        return getattr(worker, call.method).remote(call.argument)

    def first(self, futures: Sequence[Any]) -> Any:
        """Waits until one is there."""
        return ray.wait(list(futures), num_returns=1)[0][0]

    def result(self, future: Any) -> Any:
        """The answer, or the error that the worker raised."""
        try:
            return ray.get(future)
        except RayTaskError as error:
            raise error.cause from None
        except RayError as error:
            raise WorkerLostError(str(error).strip().splitlines()[0]) from error

    def dismiss(self, worker: Any) -> None:
        """End an actor at once."""
        with contextlib.suppress(RayError):
            ray.kill(worker)
