"""A bounded queue in front of one worker: short requests go between the texts of long ones; and its counters."""

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
# Smaller requests go first, but no more than this many texts in a row before the request that has waited longest.
_MOST_PASSES = 7
# Each takes many turns, one job after the other: of more, the last would not end before its deadline.
MOST_LONG_JOBS = 4
# When to ask again for a place among them: how long they take is not known.
_LONG_JOB_SECONDS = 10.0


class ServerMetrics:
    """The counters of one server, in a registry that no other server shares."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter("zicl_requests", "Requests answered.", ["route", "status"], registry=self._registry)
        self.seconds = Histogram(
            "zicl_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, registry=self._registry
        )
        self.waiting = Gauge("zicl_queue_waiting", "Texts that wait.", registry=self._registry)
        self.refused = Counter("zicl_queue_refused", "Requests refused by a full queue.", registry=self._registry)
        self.computed = Counter("zicl_computed", "Answers computed.", registry=self._registry)
        self.cached = Counter("zicl_cached", "Answers taken from the cache.", registry=self._registry)
        self.joined = Counter("zicl_joined", "Answers shared with an equal request.", registry=self._registry)
        self.groups = Histogram(
            "zicl_group_size", "Texts computed together.", buckets=(1, 2, 4, 8, 16), registry=self._registry
        )
        self.ready = Gauge("zicl_ready", "Whether the models are loaded.", registry=self._registry)

    def text(self) -> bytes:
        """Return all counters in Prometheus' text format."""
        return generate_latest(self._registry)


class QueuedJob(Protocol):
    """A job to compute; jobs with equal keys have equal answers.

    A job of many texts, which takes several turns, says so by its ``size``. An answer's ``weight`` is about its size in
    bytes; one without a weight is not kept.
    """

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        ...


class QueueFullError(Exception):
    """No place is free; ``seconds`` estimates when one will be."""

    def __init__(self, waiting: int, places: int, seconds: float) -> None:
        super().__init__(f"{waiting} of {places} places are taken")
        self.waiting, self.places, self.seconds = waiting, places, seconds


class LongJobsFullError(QueueFullError):
    """As many long jobs as may be admitted at once are under way or wait."""

    def __init__(self, waiting: int) -> None:
        super().__init__(waiting, MOST_LONG_JOBS, _LONG_JOB_SECONDS)


class StoppingError(Exception):
    """The queue takes no more jobs, and waiting ones are not started."""


@dataclass(frozen=True)
class Unfinished:
    """What a job that takes several turns has done so far; it waits again, so that smaller requests go first."""

    stage: str
    done: int
    total: int


@dataclass(eq=False)
class _Entry:
    """A job in the queue, computed in a turn of ``owner``, and the tickets that wait for it, with its number there."""

    job: Any
    owner: Ticket
    waiters: list[tuple[Ticket, int]]
    started: bool = False
    # Whether a long job has had a turn.
    begun: bool = False

    @property
    def long(self) -> bool:
        """Whether it takes several turns."""
        return _is_long(self.job)


@dataclass(eq=False)
class Ticket:
    """The jobs of one request; their results come as they are computed, each with its number."""

    count: int
    leave: Callable[[Ticket], None]
    # The entries that this ticket puts into groups, and all that it waits for: equal jobs may come from another ticket.
    pending: deque[_Entry] = field(default_factory=deque)
    entries: set[_Entry] = field(default_factory=set)
    done: asyncio.Queue[tuple[int, Any]] = field(default_factory=asyncio.Queue)
    # How many jobs it had to wait for when it came.
    size: int = 0

    @property
    def size_class(self) -> int:
        """Requests of 2 to 3, of 4 to 7, of 8 to 15 texts and so on count as equally large."""
        return self.size.bit_length()

    async def next(self, seconds: float | None = None) -> tuple[int, Any]:
        """Return an answer or an exception, or how far a job is; raise TimeoutError after ``seconds``."""
        return await asyncio.wait_for(self.done.get(), seconds)

    def close(self) -> None:
        """Free the places; a job that no other ticket waits for is not started."""
        self.leave(self)


class Queue:
    """A bounded and fair queue in which a large request does not delay small ones.

    Jobs are computed one by one, so that no answer depends on what other clients ask for; a ``group`` above 1 is for
    models that are asked about many texts at a time. Smaller requests go first, requests of about the same size take
    turns, and a request that is passed over again and again has its turn all the same. Of the long jobs, few are
    admitted at once, and the one that has begun is finished before the next begins.
    """

    def __init__(
        self,
        compute: Callable[[Sequence[Any]], Sequence[Any]],
        executor: Executor,
        *,
        places: int,
        cache: BoundedCache[Hashable, Any],
        metrics: ServerMetrics,
        group: int = 1,
    ) -> None:
        self._compute, self._executor, self._places, self.group = compute, executor, places, group
        self._cache, self._metrics = cache, metrics
        # Those with waiting jobs; the one that has waited longest since it last had a turn comes first.
        self._turns: deque[Ticket] = deque()
        self._passes = 0
        self._entries: dict[Hashable, _Entry] = {}
        self._work_waits = asyncio.Event()
        # Recent seconds per text, to estimate Retry-After.
        self._pace = 0.1
        self.waiting = 0
        self.stopping = False

    def admit(self, jobs: Sequence[QueuedJob]) -> Ticket:
        """Return a ticket for all jobs, or raise QueueFullError if there is no room for them."""
        if self.stopping:
            raise StoppingError
        cached = [self._cache.get(job.key) for job in jobs]
        new = {j.key for j, answer in zip(jobs, cached, strict=True) if answer is None and j.key not in self._entries}
        if self.waiting + len(new) > self._places:
            self._metrics.refused.inc()
            raise QueueFullError(self.waiting, self._places, self._pace * self.waiting)
        long = sum(entry.long for entry in self._entries.values())
        new_long = {job.key for job in jobs if _is_long(job)} & new
        if new_long and long + len(new_long) > MOST_LONG_JOBS:
            self._metrics.refused.inc()
            raise LongJobsFullError(long)
        sizes = {job.key: getattr(job, "size", 1) for job, answer in zip(jobs, cached, strict=True) if answer is None}
        ticket = Ticket(len(jobs), self._leave, size=sum(sizes.values()))
        for number, (job, answer) in enumerate(zip(jobs, cached, strict=True)):
            if answer is not None:
                self._metrics.cached.inc()
                ticket.done.put_nowait((number, answer))
            else:
                self._join(ticket, number, job)
        self._report_waiting()
        return ticket

    def _join(self, ticket: Ticket, number: int, job: QueuedJob) -> None:
        entry = self._entries.get(job.key)
        if entry is None:
            entry = self._entries[job.key] = _Entry(job, ticket, [])
            self._append(ticket, entry)
            self.waiting += 1
        else:
            self._metrics.joined.inc()
            if not entry.started and ticket.size_class < entry.owner.size_class:
                # It is computed when the smaller request has its turn.
                self._remove(entry)
                self._append(ticket, entry)
        entry.waiters.append((ticket, number))
        ticket.entries.add(entry)

    def _append(self, ticket: Ticket, entry: _Entry, place: int | None = None) -> None:
        if not ticket.pending:
            self._turns.append(ticket)
        ticket.pending.insert(len(ticket.pending) if place is None else place, entry)
        entry.owner = ticket
        self._work_waits.set()

    def _remove(self, entry: _Entry) -> None:
        entry.owner.pending.remove(entry)
        if not entry.owner.pending:
            self._turns.remove(entry.owner)

    def _leave(self, ticket: Ticket) -> None:
        for entry in ticket.entries:
            entry.waiters = [(other, number) for other, number in entry.waiters if other is not ticket]
            if entry.started:
                continue
            if not entry.waiters:
                del self._entries[entry.job.key]
                self.waiting -= 1
            elif entry.owner is ticket:
                # The smallest request would have had it before, had the one that leaves not come.
                self._append(min((other for other, _ in entry.waiters), key=lambda other: other.size_class), entry, 0)
        if ticket.pending:
            ticket.pending.clear()
            self._turns.remove(ticket)
        ticket.entries.clear()
        self._report_waiting()

    async def run(self) -> None:
        """Compute waiting jobs, group after group, until stopped; a running group is finished."""
        loop = asyncio.get_running_loop()
        while not self.stopping:
            await self._work_waits.wait()
            group = self._take_group()
            if not group:
                self._work_waits.clear()
                continue
            start = time.monotonic()
            try:
                outcomes = await loop.run_in_executor(self._executor, self._compute, [entry.job for entry in group])
            except Exception as error:
                # All clients of the group get it as their answer.
                outcomes = [error] * len(group)
            seconds = (time.monotonic() - start) / len(group)
            self._pace += 0.3 * (seconds - self._pace)
            self._metrics.groups.observe(len(group))
            for entry, outcome in zip(group, outcomes, strict=True):
                if not isinstance(outcome, Unfinished):
                    self._finish(entry, outcome)
                elif self.stopping:
                    self._finish(entry, StoppingError())
                else:
                    self._wait_again(entry, outcome)

    def _take_group(self) -> list[_Entry]:
        group: list[_Entry] = []
        while len(group) < self.group and (ready := self._ready()):
            ticket = self._next_turn(ready)
            self._turns.remove(ticket)
            entry = ticket.pending.popleft()
            if ticket.pending:
                self._turns.append(ticket)
            entry.started = entry.begun = True
            self.waiting -= 1
            group.append(entry)
        self._report_waiting()
        return group

    def _ready(self) -> list[Ticket]:
        """Return the tickets that may have a turn: a long job may not while another one is unfinished."""
        if not any(entry.long and entry.begun for entry in self._entries.values()):
            return [*self._turns]
        return [ticket for ticket in self._turns if ticket.pending[0].begun or not ticket.pending[0].long]

    def _next_turn(self, ready: Sequence[Ticket]) -> Ticket:
        smallest, longest = min(ready, key=lambda ticket: ticket.size_class), ready[0]
        if smallest is longest or self._passes == _MOST_PASSES:
            self._passes = 0
            return longest
        self._passes += 1
        return smallest

    def _wait_again(self, entry: _Entry, so_far: Unfinished) -> None:
        """Tell those who wait how far a job is, and put it back; nobody's job ends here."""
        entry.started = False
        if not entry.waiters:
            del self._entries[entry.job.key]
            return
        for ticket, number in entry.waiters:
            ticket.done.put_nowait((number, so_far))
        tickets = [ticket for ticket, _ in entry.waiters]
        self._append(entry.owner if entry.owner in tickets else tickets[0], entry, 0)
        self.waiting += 1
        self._report_waiting()

    def _finish(self, entry: _Entry, outcome: Any) -> None:
        if self._entries.get(entry.job.key) is entry:
            del self._entries[entry.job.key]
        if not isinstance(outcome, Exception):
            self._metrics.computed.inc()
            if outcome.weight is not None:
                self._cache.put(entry.job.key, outcome, outcome.weight)
        for ticket, number in entry.waiters:
            ticket.entries.discard(entry)
            ticket.done.put_nowait((number, outcome))

    def stop(self) -> None:
        """Take no more jobs and refuse those that wait; a running group is finished."""
        self.stopping = True
        for entry in [entry for entry in self._entries.values() if not entry.started]:
            self._finish(entry, StoppingError())
        for ticket in self._turns:
            ticket.pending.clear()
        self._turns.clear()
        self.waiting = 0
        self._report_waiting()
        self._work_waits.set()

    def _report_waiting(self) -> None:
        self._metrics.waiting.set(self.waiting)


def _is_long(job: QueuedJob) -> bool:
    return hasattr(job, "size")
