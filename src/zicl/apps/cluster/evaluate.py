"""An evaluation whose batches are computed by workers that each hold the models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from zicl.apps.cluster.pool import Call, Pool
from zicl.apps.cluster.worker import Conditions
from zicl.exceptions import ClusterError
from zicl.lab.evaluate.context import World
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.plan import Batch
from zicl.lab.evaluate.run import Computed, Runner
from zicl.lab.evaluate.store import differences

_THE_SAME = "the same models, corpus, data and versions have to be on all of them"


class EvaluationWorker:
    """Computes batches in a process of its own, with what the experiment names loaded there."""

    def __init__(self, make: Callable[[], World], conditions: Conditions) -> None:
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

    def try_out(self, todo: Sequence[Batch]) -> None:
        """One prompt of every kind of cell."""
        self._runner.try_out(todo)

    def rows(self, asked: tuple[Batch, dict[str, Any]]) -> Computed:
        """The rows of a batch, which depend on what the given manifest says and on nothing of this machine."""
        batch, expected = asked
        if not self._checked:
            other = list(differences("", expected, manifest(self._runner.world)))
            if other:
                raise ClusterError(f"the machines of the cluster differ: {'; '.join(other[:5])}", hint=_THE_SAME)
            self._checked = True
        return self._runner.batch(batch)


class Spread:
    """Batches computed by a pool of workers, in any order; those of the same examples by one, as far as it goes.

    ``hashes`` are those of the tasks' examples as they were read here.
    """

    def __init__(self, pool: Pool, hashes: Mapping[str, str]) -> None:
        self._pool, self._hashes = pool, hashes
        self._manifest: dict[str, Any] = {}

    def manifest(self) -> dict[str, Any]:
        """What rows will depend on, as one of the workers finds it."""
        self._manifest = self._pool.ask(Call("manifest"))
        there = {name: task["hash"] for name, task in self._manifest["tasks"].items()}
        other = sorted(name for name, value in self._hashes.items() if there.get(name) != value)
        if other:
            raise ClusterError(f"a machine of the cluster has other examples of {', '.join(other)}", hint=_THE_SAME)
        return self._manifest

    def rows(self, todo: Sequence[Batch]) -> Iterator[Computed]:
        """Every batch once."""
        self._pool.ask(Call("try_out", todo))
        # A batch's examples have the same number under every method: what is found for them is found once.
        calls = (Call("rows", (batch, self._manifest), home=batch.number) for batch in todo)
        return (found for _, found in self._pool.run(calls))
