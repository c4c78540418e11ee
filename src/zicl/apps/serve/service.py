"""Hold what a running server has: its queue, its one worker thread, and the engine once it is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from zicl._util.cache import BoundedCache
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.problems import STARTING, STOPPING, RefusedError
from zicl.apps.serve.queue import Queue, ServerMetrics

if TYPE_CHECKING:
    from zicl.apps.serve.engine import Engine
    from zicl.classifier import ZICLClassifier


# Answers kept, and their total size.
_ANSWERS, _ANSWER_BYTES = 1024, 16 << 20

Load = Callable[[], "ZICLClassifier"]


class Service:
    """One classifier behind one queue; ``load`` is called in the worker's thread, once the server listens."""

    def __init__(self, load: Load, limits: RequestLimits) -> None:
        self._load, self.limits, self.metrics = load, limits, ServerMetrics()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="zicl-worker")
        self.queue = Queue(
            self._compute,
            self._executor,
            places=limits.queue,
            cache=BoundedCache(_ANSWERS, _ANSWER_BYTES),
            metrics=self.metrics,
        )
        self._engine: Engine | None = None
        self.failure: BaseException | None = None
        # Called when the models are loaded, or cannot be.
        self.on_loaded: Callable[[], None] = lambda: None

    @property
    def engine(self) -> Engine:
        """The engine, or a refusal while there is none."""
        if self.queue.stopping:
            raise RefusedError(STOPPING, "the server is stopping", hint="ask again when it is back", retry_after=10)
        if self._engine is None:
            raise RefusedError(
                STARTING, "the models are not loaded yet", hint="try again in some seconds", retry_after=2
            )
        return self._engine

    @property
    def loading(self) -> bool:
        """Whether the models are not there yet, and may still come."""
        return self._engine is None and self.failure is None

    @asynccontextmanager
    async def running(self, _app: Any) -> AsyncIterator[None]:
        """While the application runs: the models are loaded, and what waits is computed."""
        tasks = [asyncio.create_task(self._loading()), asyncio.create_task(self.queue.run())]
        yield
        self.queue.stop()
        await tasks[1]
        tasks[0].cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _loading(self) -> None:
        try:
            self._engine = await asyncio.get_running_loop().run_in_executor(self._executor, self._make)
            self.metrics.ready.set(1)
        except Exception as error:
            # Whoever started the server is told.
            self.failure = error
        self.on_loaded()

    def _make(self) -> Engine:
        # Imported here: the server listens and answers before torch is there.
        from zicl.apps.serve.engine import Engine

        return Engine(self._load(), self.limits)

    def _compute(self, works: Sequence[Any]) -> Sequence[Any]:
        assert self._engine is not None
        return self._engine.compute(works)
