"""An evaluation whose batches are computed by workers that each hold the models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from zicl.apps.cluster.connect import WorkerSetup
from zicl.apps.cluster.pool import WorkerCall, WorkerPool
from zicl.exceptions import ClusterError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.plan import PlanBatch
from zicl.lab.evaluate.run import ComputedBatch, Runner
from zicl.lab.evaluate.store import manifest_differences

_THE_SAME = "the same models, corpus, data and versions have to be on all of them"


class EvaluationWorker:
    """Computes batches in a process of its own, with what the experiment names loaded there."""

    def __init__(self, make: Callable[[], ExperimentContext], conditions: WorkerSetup) -> None:
        self._make, self._conditions = make, conditions
        self._checked = False

    def ready(self) -> None:
        """Read the examples; the models are loaded when they are first needed."""
        self._conditions.keep()
        self._runner = Runner(self._make())

    def manifest(self, _: None) -> dict[str, Any]:
        """What rows depend on, after all checks."""
        self._runner.world.check()
        return manifest(self._runner.world)

    def try_out(self, todo: Sequence[PlanBatch]) -> None:
        """One prompt of every kind of cell."""
        self._runner.try_out(todo)

    def rows(self, asked: tuple[PlanBatch, dict[str, Any]]) -> ComputedBatch:
        """The rows of a batch, which depend on what the given manifest says and on nothing of this machine."""
        batch, expected = asked
        if not self._checked:
            other = list(manifest_differences("", expected, manifest(self._runner.world)))
            if other:
                raise ClusterError(f"the machines of the cluster differ: {'; '.join(other[:5])}", hint=_THE_SAME)
            self._checked = True
        return self._runner.batch(batch)


class ClusterCompute:
    """Batches computed by a pool of workers, in any order; those of the same examples by one, as far as it goes.

    ``hashes`` are those of the tasks' examples as they were read here.
    """

    def __init__(self, pool: WorkerPool, hashes: Mapping[str, str]) -> None:
        self._pool, self._hashes = pool, hashes
        self._manifest: dict[str, Any] = {}

    def manifest(self) -> dict[str, Any]:
        """What rows will depend on, as one of the workers finds it."""
        self._manifest = self._pool.ask(WorkerCall("manifest"))
        there = {name: task["hash"] for name, task in self._manifest["tasks"].items()}
        other = sorted(name for name, value in self._hashes.items() if there.get(name) != value)
        if other:
            raise ClusterError(f"a machine of the cluster has other examples of {', '.join(other)}", hint=_THE_SAME)
        return self._manifest

    def rows(self, todo: Sequence[PlanBatch]) -> Iterator[ComputedBatch]:
        """Every batch once."""
        self._pool.ask(WorkerCall("try_out", todo))
        # A batch's examples have the same number under every method: what is found for them is found once.
        calls = (WorkerCall("rows", (batch, self._manifest), home=batch.number) for batch in todo)
        return (found for _, found in self._pool.run(calls))
