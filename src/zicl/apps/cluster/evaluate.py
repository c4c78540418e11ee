"""Evaluate on workers that each hold the models: the batches of the plan, in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from zicl.apps.cluster.pool import WorkerCall, WorkerPool
from zicl.apps.cluster.worker import WorkerSetup
from zicl.exceptions import ClusterError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.plan import PlanBatch
from zicl.lab.evaluate.run import ComputedBatch, Runner
from zicl.lab.evaluate.store import manifest_differences

_HINT = "put the same models, corpus, data and versions on all machines"


class EvaluationWorker:
    """Compute batches in another process, with the experiment's models loaded there."""

    def __init__(self, make: Callable[[], ExperimentContext], setup: WorkerSetup) -> None:
        self._make, self._setup = make, setup
        self._checked = False

    def load(self) -> None:
        """Read the examples; models are loaded on first use."""
        self._setup.apply()
        self._runner = Runner(self._make())

    def manifest(self, _: None) -> dict[str, Any]:
        """Check the experiment, and return the manifest: all that rows depend on."""
        self._runner.context.check()
        return manifest(self._runner.context)

    def try_out(self, todo: Sequence[PlanBatch]) -> None:
        """Build one prompt of every kind of cell, to find errors early."""
        self._runner.try_out(todo)

    def rows(self, work: tuple[PlanBatch, dict[str, Any]]) -> ComputedBatch:
        """Return the rows of a batch, after checking that this machine has the given manifest."""
        batch, expected = work
        if not self._checked:
            different = list(manifest_differences("", expected, manifest(self._runner.context)))
            if different:
                raise ClusterError(f"the machines of the cluster differ: {'; '.join(different[:5])}", hint=_HINT)
            self._checked = True
        return self._runner.batch(batch)


class ClusterCompute:
    """Compute batches with a pool of workers, in any order; the same examples go to the same worker where possible.

    ``hashes`` are those of the tasks' examples as the command read them.
    """

    def __init__(self, pool: WorkerPool, hashes: Mapping[str, str]) -> None:
        self._pool, self._hashes = pool, hashes
        self._manifest: dict[str, Any] = {}

    def manifest(self) -> dict[str, Any]:
        """Return the manifest of one of the workers, after checking its examples."""
        self._manifest = self._pool.call(WorkerCall("manifest"))
        remote = {name: task["hash"] for name, task in self._manifest["tasks"].items()}
        different = sorted(name for name, value in self._hashes.items() if remote.get(name) != value)
        if different:
            raise ClusterError(f"a machine of the cluster has other examples of {', '.join(different)}", hint=_HINT)
        return self._manifest

    def rows(self, todo: Sequence[PlanBatch]) -> Iterator[ComputedBatch]:
        """Yield every batch once, as they are done."""
        self._pool.call(WorkerCall("try_out", todo))
        # A batch number means the same examples under every method: one worker retrieves for them once.
        calls = (WorkerCall("rows", (batch, self._manifest), affinity=batch.number) for batch in todo)
        return (batch for _, batch in self._pool.run(calls))
