"""Hold what a running server has (queue, worker thread, engine) and turn jobs into answers before the deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from zicl._util.cache import BoundedCache
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.problems import BUSY, OVERDUE, STARTING, STOPPING, RefusedError, refusal
from zicl.apps.serve.queue import (
    LongJobsFullError,
    Queue,
    QueuedJob,
    QueueFullError,
    ServerMetrics,
    StoppingError,
    Ticket,
    Unfinished,
)
from zicl.apps.serve.schema import ProgressLine

if TYPE_CHECKING:
    from zicl.apps.serve.engine import Engine
    from zicl.classifier import ZICLClassifier

NDJSON = "application/x-ndjson"
# The cache of answers: how many, and their total size.
_ANSWERS, _ANSWER_BYTES = 1024, 16 << 20
# A stream that its client does not read is given up this many seconds after its deadline.
_UNREAD_SECONDS = 30.0

Load = Callable[[], "ZICLClassifier"]


class ClientLeftError(Exception):
    """The client disconnected before its answer was ready."""


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
        """The engine; a refusal while there is none."""
        if self.queue.stopping:
            raise _stopping()
        if self._engine is None:
            raise RefusedError(
                STARTING, "the models are not loaded yet", hint="try again in some seconds", retry_after=2
            )
        return self._engine

    @property
    def loading(self) -> bool:
        """Whether the models are still being loaded."""
        return self._engine is None and self.failure is None

    @asynccontextmanager
    async def running(self, _app: Any) -> AsyncIterator[None]:
        """Load the models and compute what waits, while the application runs."""
        loading, computing = asyncio.create_task(self._load_engine()), asyncio.create_task(self.queue.run())
        yield
        self.queue.stop()
        await computing
        loading.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _load_engine(self) -> None:
        try:
            self._engine = await asyncio.get_running_loop().run_in_executor(self._executor, self._make_engine)
            self.queue.group = self._engine.group
            self.metrics.ready.set(1)
        except Exception as error:
            # Raised again by ``server.serve``.
            self.failure = error
        self.on_loaded()

    def _make_engine(self) -> Engine:
        # Imported here: the server listens and answers before torch is imported.
        from zicl.apps.serve.engine import Engine

        return Engine(self._load(), self.limits)

    def _compute(self, jobs: Sequence[Any]) -> Sequence[Any]:
        assert self._engine is not None
        return self._engine.compute(jobs)

    async def answer_one(self, job: QueuedJob, request: Request) -> Any:
        """Return the answer to one job."""
        return (await self.answer_all([job], request))[0]

    async def answer_all(self, jobs: Sequence[QueuedJob], request: Request) -> list[Any]:
        """Return all answers in order; raise the first failure, also that of the deadline or of a client that left."""
        ticket = self._admit(jobs)
        gathering, leaving = asyncio.create_task(_gather(ticket)), asyncio.create_task(_disconnected(request))
        try:
            await asyncio.wait({gathering, leaving}, timeout=self.limits.deadline, return_when=asyncio.FIRST_COMPLETED)
            if gathering.done():
                return gathering.result()
            if leaving.done():
                raise ClientLeftError
            raise _overdue(self.limits.deadline)
        finally:
            gathering.cancel()
            leaving.cancel()
            ticket.close()

    def stream(self, jobs: Sequence[QueuedJob]) -> LineStream:
        """Return an answer that sends each result when it is computed."""
        return LineStream(self._admit(jobs), self.limits.deadline)

    def _admit(self, jobs: Sequence[QueuedJob]) -> Ticket:
        try:
            return self.queue.admit(jobs)
        except (QueueFullError, StoppingError) as error:
            raise _job_refusal(error) from error


class LineStream(StreamingResponse):
    """Results as lines of JSON, in the order in which they are computed; a failure is the last line."""

    def __init__(self, ticket: Ticket, seconds: float) -> None:
        self._ticket, self._seconds = ticket, seconds + _UNREAD_SECONDS
        super().__init__(_lines(ticket, seconds), media_type=NDJSON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines, and free the places in any case: a client may leave early, or never read."""
        try:
            async with asyncio.timeout(self._seconds):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            # The answer stays incomplete, so the server closes the connection.
            return
        finally:
            self._ticket.close()


async def _lines(ticket: Ticket, seconds: float) -> AsyncIterator[str]:
    end = time.monotonic() + seconds
    left = ticket.count
    while left:
        try:
            index, outcome = await ticket.next(max(0.0, end - time.monotonic()))
        except TimeoutError:
            yield _overdue(seconds).line + "\n"
            return
        if isinstance(outcome, Unfinished):
            yield ProgressLine(stage=outcome.stage, done=outcome.done, total=outcome.total).model_dump_json() + "\n"
            continue
        if isinstance(outcome, Exception):
            yield _job_refusal(outcome).at(index).line + "\n"
            return
        yield outcome.at(index).model_dump_json(exclude_unset=True) + "\n"
        left -= 1


async def _gather(ticket: Ticket) -> list[Any]:
    answers: list[Any] = [None] * ticket.count
    left = ticket.count
    while left:
        index, outcome = await ticket.next()
        if isinstance(outcome, Unfinished):
            continue
        if isinstance(outcome, Exception):
            refused = _job_refusal(outcome)
            raise refused if ticket.count == 1 else refused.at(index)
        answers[index] = outcome
        left -= 1
    return answers


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _job_refusal(error: Exception) -> RefusedError:
    if isinstance(error, LongJobsFullError):
        return RefusedError(
            BUSY,
            f"{error.waiting} fits and maps are being computed, or wait",
            expected=f"at most {error.places} at once",
            hint="try again after the time in Retry-After",
            retry_after=error.seconds,
        )
    if isinstance(error, QueueFullError):
        return RefusedError(
            BUSY,
            f"{error.waiting:,} of {error.places:,} places in the queue are taken",
            expected="as many free places as the request has texts",
            hint="try again after the time in Retry-After, or send fewer texts",
            retry_after=min(error.seconds, 60.0),
        )
    return _stopping() if isinstance(error, StoppingError) else refusal(error)


def _stopping() -> RefusedError:
    return RefusedError(STOPPING, "the server is stopping", hint="try again when it is back", retry_after=10)


def _overdue(seconds: float) -> RefusedError:
    return RefusedError(
        OVERDUE,
        f"the answer was not ready after {seconds:g} seconds",
        hint="send fewer texts per request, use a stream, or try again when the server is less busy",
        retry_after=10,
    )
