"""Workers as Ray actors. Ray restarts none of them: the pool knows whether a lost one is still needed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from zicl.apps.cluster.connect import Cluster, cluster_error, short_message
from zicl.apps.cluster.pool import WorkerCall, WorkerLostError
from zicl.exceptions import ClusterError

# After this many seconds without a result from any worker, say that the cluster may have no room for them.
_NOTICE_AFTER = 60.0


class RayWorkers:
    """Workers of one class, with the same arguments, on whichever machines have room for them.

    The class stores its arguments, loads in ``load()``, and has one method with one argument for each kind of call.
    """

    def __init__(self, worker: type, arguments: Sequence[Any], cluster: Cluster, notice: Callable[[str], None]) -> None:
        self._arguments = [ray.put(argument) for argument in arguments]
        # No notice is due once a worker has answered, or one was given.
        self._notice, self._noticed = notice, False
        self._class: Any = ray.remote(worker).options(
            num_cpus=cluster.threads,
            num_gpus=cluster.gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )

    def start(self) -> Any:
        """Start a new actor."""
        self._noticed = False
        return self._class.remote(*self._arguments)

    def load(self, worker: Any) -> Any:
        """Let an actor load what it needs; return a future."""
        return worker.load.remote()

    def submit(self, worker: Any, call: WorkerCall) -> Any:
        """Send a call; return a future of its result."""
        return getattr(worker, call.method).remote(call.argument)

    def wait_any(self, futures: Sequence[Any]) -> Any:
        """Wait until one of the futures is done, and return it."""
        while not (done := ray.wait(list(futures), num_returns=1, timeout=_NOTICE_AFTER)[0]):
            if not self._noticed:
                self._notice("no worker has answered for a minute: there may be no room for one; see 'ray status'")
                self._noticed = True
        self._noticed = True
        return done[0]

    def result(self, future: Any) -> Any:
        """Return the result, or raise the worker's error or ``WorkerLostError``."""
        try:
            return ray.get(future)
        except RayTaskError as error:
            raise cluster_error(error) from error
        except RayActorError as error:
            if getattr(error, "actor_init_failed", False):
                raise ClusterError(
                    f"a worker could not be started: {short_message(error)}",
                    hint="install the same Python and the same zicl on all machines",
                ) from error
            raise WorkerLostError(short_message(error)) from error
        except RayError as error:
            raise WorkerLostError(short_message(error)) from error

    def stop(self, worker: Any) -> None:
        """Kill an actor."""
        with contextlib.suppress(RayError):
            ray.kill(worker)
