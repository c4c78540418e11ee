"""Workers as Ray actors. Ray itself restarts none: the pool knows better whether one is still needed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from zicl.apps.cluster.connect import Cluster, cluster_error, short_message
from zicl.apps.cluster.pool import WorkerCall, WorkerLostError
from zicl.exceptions import ClusterError

# After so long without a word from any worker, it is said that the cluster may have no room for them.
_PATIENCE = 60.0


class RayWorkers:
    """Workers of one class, made with the same arguments, on whichever machines have room for them.

    The class stores its arguments, has a method ``ready()`` that loads, and one for each call, with its argument.
    """

    def __init__(self, worker: type, arguments: Sequence[Any], cluster: Cluster, notice: Callable[[str], None]) -> None:
        self._arguments = [ray.put(argument) for argument in arguments]
        self._notice, self._heard = notice, False
        self._class: Any = ray.remote(worker).options(
            num_cpus=cluster.threads,
            num_gpus=cluster.gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )

    def hire(self) -> Any:
        """A new actor."""
        self._heard = False
        return self._class.remote(*self._arguments)

    def ready(self, worker: Any) -> Any:
        """The future of its having loaded."""
        return worker.ready.remote()

    def start(self, worker: Any, call: WorkerCall) -> Any:
        """The future of a call's answer."""
        return getattr(worker, call.method).remote(call.argument)

    def first(self, futures: Sequence[Any]) -> Any:
        """Waits until one is there."""
        while not (done := ray.wait(list(futures), num_returns=1, timeout=_PATIENCE)[0]):
            if not self._heard:
                self._notice("no worker has answered for a minute: there may be no room for one; see 'ray status'")
                self._heard = True
        self._heard = True
        return done[0]

    def result(self, future: Any) -> Any:
        """The answer, or the error that the worker raised."""
        try:
            return ray.get(future)
        except RayTaskError as error:
            raise cluster_error(error) from error
        except RayActorError as error:
            if getattr(error, "actor_init_failed", False):
                raise ClusterError(
                    f"a worker could not be started: {short_message(error)}",
                    hint="the same Python and the same zicl have to be on all machines",
                ) from error
            raise WorkerLostError(short_message(error)) from error
        except RayError as error:
            raise WorkerLostError(short_message(error)) from error

    def dismiss(self, worker: Any) -> None:
        """End an actor at once."""
        with contextlib.suppress(RayError):
            ray.kill(worker)
