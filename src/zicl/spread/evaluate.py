"""An evaluation whose batches are computed by workers that each hold the models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from zicl.evaluate.manifest import fingerprint, manifest
from zicl.evaluate.plan import Batch
from zicl.evaluate.run import Computed, Runner
from zicl.evaluate.store import differences
from zicl.evaluate.world import World
from zicl.exceptions import ClusterError
from zicl.spread.pool import Call, Pool
from zicl.spread.threads import use_threads


class EvaluationWorker:
    """Computes batches in a process of its own, with what the experiment names loaded there."""

    def __init__(self, make: Callable[[], World], threads: int) -> None:
        self._make, self._threads = make, threads
        self._checked = False

    def ready(self) -> None:
        """Read the examples; the models are loaded when they are first needed."""
        use_threads(self._threads)
        self._runner = Runner(self._make())

    def manifest(self, _: None) -> dict[str, Any]:
        """What rows depend on, after all checks."""
        self._runner.world.check()
        return manifest(self._runner.world)

    def try_out(self, todo: Sequence[Batch]) -> None:
        """One prompt of every kind of cell."""
        self._runner.try_out(todo)

    def rows(self, asked: tuple[Batch, dict[str, Any]]) -> Computed:
        """The rows of a batch, under the fingerprint that all workers have to have."""
        batch, expected = asked
        if not self._checked:
            other = list(differences("", expected, fingerprint(self._runner.world)))
            if other:
                raise ClusterError(
                    f"the machines of the cluster differ: {'; '.join(other[:5])}",
                    hint="the same models, corpus and versions have to be on all of them",
                )
            self._checked = True
        return self._runner.batch(batch)


class Spread:
    """Batches computed by a pool of workers, in any order; those of the same examples by one, as far as it goes."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._fingerprint: dict[str, Any] = {}

    def manifest(self) -> dict[str, Any]:
        """What rows will depend on, as one of the workers finds it."""
        found: dict[str, Any] = self._pool.ask(Call("manifest"))
        self._fingerprint = found["fingerprint"]
        return found

    def rows(self, todo: Sequence[Batch]) -> Iterator[Computed]:
        """Every batch once."""
        self._pool.ask(Call("try_out", todo))
        # A batch's examples have the same number under every method: what is found for them is found once.
        calls = (Call("rows", (batch, self._fingerprint), home=batch.number) for batch in todo)
        return (found for _, found in self._pool.run(calls))
