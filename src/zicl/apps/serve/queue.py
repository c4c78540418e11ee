"""A bounded queue before one worker: waiting work is computed in groups, equal work once."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from zicl._util.cache import BoundedCache

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class ServerMetrics:
    """The counters of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter("zicl_requests", "Requests answered.", ["route", "status"], registry=self._registry)
        self.seconds = Histogram(
            "zicl_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, registry=self._registry
        )
        self.waiting = Gauge("zicl_queue_waiting", "Texts that wait.", registry=self._registry)
        self.refused = Counter("zicl_queue_refused", "Requests refused by a full queue.", registry=self._registry)
        self.computed = Counter("zicl_computed", "Answers computed.", registry=self._registry)
        self.cached = Counter("zicl_cached", "Answers that were known already.", registry=self._registry)
        self.joined = Counter("zicl_joined", "Answers shared with an equal request.", registry=self._registry)
        self.groups = Histogram(
            "zicl_group_size", "Texts computed together.", buckets=(1, 2, 4, 8, 16), registry=self._registry
        )
        self.ready = Gauge("zicl_ready", "Whether the models are loaded.", registry=self._registry)

    def text(self) -> bytes:
        """All of them, to be read by Prometheus."""
        return generate_latest(self._registry)


# -- A bounded queue before one worker: what is waiting is computed in groups, equal work once.


# Texts computed together: enough to sort by length, few enough that first results come soon.
GROUP = 16


class QueuedWork(Protocol):
    """Something to compute; two with one ``key`` have one answer."""

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        ...


class WorkAnswer(Protocol):
    """What was computed; ``weight`` is about its size in bytes."""

    @property
    def weight(self) -> int:
        """About its size in bytes."""
        ...


class QueueFullError(Exception):
    """No place is free; ``seconds`` is about when there may be."""

    def __init__(self, waiting: int, places: int, seconds: float) -> None:
        super().__init__(f"{waiting} of {places} places are taken")
        self.waiting, self.places, self.seconds = waiting, places, seconds


class StoppingError(Exception):
    """The queue takes nothing more, and what was waiting is not begun."""


@dataclass(eq=False)
class _Job:
    work: Any
    waiters: list[tuple[Ticket, int]]
    begun: bool = False


@dataclass(eq=False)
class Ticket:
    """A request's works; its results come as they are done, each with its number."""

    count: int
    leave: Callable[[Ticket], None]
    pending: deque[_Job] = field(default_factory=deque)
    jobs: set[_Job] = field(default_factory=set)
    done: asyncio.Queue[tuple[int, Any]] = field(default_factory=asyncio.Queue)

    async def next(self, seconds: float | None = None) -> tuple[int, Any]:
        """The next result, an answer or an exception; TimeoutError if it does not come in time."""
        return await asyncio.wait_for(self.done.get(), seconds)

    def close(self) -> None:
        """Nobody waits any more: places are freed, and what nobody else waits for is not begun."""
        self.leave(self)


class Queue:
    """Bounded, and fair: waiting requests give work to a group in turn, so that a large one holds up no small one."""

    def __init__(
        self,
        compute: Callable[[Sequence[Any]], Sequence[Any]],
        executor: Executor,
        *,
        places: int,
        cache: BoundedCache[Hashable, Any],
        metrics: ServerMetrics,
        group: int = GROUP,
    ) -> None:
        self._compute, self._executor, self._places, self._group = compute, executor, places, group
        self._cache, self._metrics = cache, metrics
        self._turns: deque[Ticket] = deque()
        self._under_way: dict[Hashable, _Job] = {}
        self._work_waits = asyncio.Event()
        # Seconds a text takes, as of late: what Retry-After is reckoned from.
        self._pace = 0.1
        self.waiting = 0
        self.stopping = False

    def admit(self, works: Sequence[QueuedWork]) -> Ticket:
        """A ticket for all of the works, or QueueFullError at once if there is no room for them."""
        if self.stopping:
            raise StoppingError
        known = [self._cache.get(work.key) for work in works]
        new = {w.key for w, k in zip(works, known, strict=True) if k is None and w.key not in self._under_way}
        if self.waiting + len(new) > self._places:
            self._metrics.refused.inc()
            raise QueueFullError(self.waiting, self._places, self._pace * self.waiting)
        ticket = Ticket(len(works), self._leave)
        for number, (work, answer) in enumerate(zip(works, known, strict=True)):
            if answer is not None:
                self._metrics.cached.inc()
                ticket.done.put_nowait((number, answer))
                continue
            self._join(ticket, number, work)
        self._count()
        return ticket

    def _join(self, ticket: Ticket, number: int, work: QueuedWork) -> None:
        job = self._under_way.get(work.key)
        if job is None:
            job = self._under_way[work.key] = _Job(work, [])
            self._wait(ticket, job)
            self.waiting += 1
        else:
            self._metrics.joined.inc()
        job.waiters.append((ticket, number))
        ticket.jobs.add(job)

    def _wait(self, ticket: Ticket, job: _Job) -> None:
        if not ticket.pending:
            self._turns.append(ticket)
        ticket.pending.append(job)
        self._work_waits.set()

    def _leave(self, ticket: Ticket) -> None:
        for job in ticket.jobs:
            job.waiters = [(other, number) for other, number in job.waiters if other is not ticket]
            if job.begun:
                continue
            if not job.waiters:
                del self._under_way[job.work.key]
                self.waiting -= 1
            elif job in ticket.pending:
                self._wait(job.waiters[0][0], job)
        if ticket.pending:
            ticket.pending.clear()
            self._turns.remove(ticket)
        ticket.jobs.clear()
        self._count()

    async def run(self) -> None:
        """Compute what waits, group after group, until stopped; the group that is running is finished."""
        loop = asyncio.get_running_loop()
        while not self.stopping:
            await self._work_waits.wait()
            group = self._take()
            if not group:
                self._work_waits.clear()
                continue
            begun = time.monotonic()
            try:
                outcomes = await loop.run_in_executor(self._executor, self._compute, [job.work for job in group])
            except Exception as error:
                # Whatever it is, those who wait are told.
                outcomes = [error] * len(group)
            seconds = (time.monotonic() - begun) / len(group)
            self._pace += 0.3 * (seconds - self._pace)
            self._metrics.groups.observe(len(group))
            for job, outcome in zip(group, outcomes, strict=True):
                self._finish(job, outcome)

    def _take(self) -> list[_Job]:
        group: list[_Job] = []
        while self._turns and len(group) < self._group:
            ticket = self._turns.popleft()
            job = ticket.pending.popleft()
            if ticket.pending:
                self._turns.append(ticket)
            if job.waiters:
                job.begun = True
                self.waiting -= 1
                group.append(job)
        self._count()
        return group

    def _finish(self, job: _Job, outcome: Any) -> None:
        if self._under_way.get(job.work.key) is job:
            del self._under_way[job.work.key]
        if not isinstance(outcome, Exception):
            self._metrics.computed.inc()
            self._cache.put(job.work.key, outcome, outcome.weight)
        for ticket, number in job.waiters:
            ticket.jobs.discard(job)
            ticket.done.put_nowait((number, outcome))

    def stop(self) -> None:
        """Take nothing more; who waits is told so, what is running is finished."""
        self.stopping = True
        for job in [job for job in self._under_way.values() if not job.begun]:
            self._finish(job, StoppingError())
        for ticket in self._turns:
            ticket.pending.clear()
        self._turns.clear()
        self.waiting = 0
        self._count()
        self._work_waits.set()

    def _count(self) -> None:
        self._metrics.waiting.set(self.waiting)
