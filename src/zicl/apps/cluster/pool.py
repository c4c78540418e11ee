"""A pool of workers that may be lost: a lost worker is replaced, and its call is made again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import Any, Protocol, Self

from zicl.exceptions import ClusterError

# The number of workers lost over the same call after which the call, not a machine, counts as the cause.
_MAX_LOSSES = 3
# For ordered results: how many calls per worker may be started before the next result is there.
_CALLS_AHEAD = 4
# How many waiting calls are searched for one with a worker's affinity.
_LOOKAHEAD = 64


class WorkerLostError(Exception):
    """A worker is gone: its process or its machine died."""


@dataclass(frozen=True)
class WorkerCall:
    """A method call for a worker. Calls with equal ``affinity`` go to the same worker as long as none is idle."""

    method: str
    argument: Any = None
    affinity: int | None = None


class Workers(Protocol):
    """Start workers and send calls to them. Workers and futures may be any objects; futures are hashable."""

    def start(self) -> Any:
        """Start a new worker."""
        ...

    def load(self, worker: Any) -> Any:
        """Let a worker load what it needs; return a future."""
        ...

    def submit(self, worker: Any, call: WorkerCall) -> Any:
        """Send a call; return a future of its result."""
        ...

    def wait_any(self, futures: Sequence[Any]) -> Any:
        """Wait until one of the futures is done, and return it."""
        ...

    def result(self, future: Any) -> Any:
        """Return the result, or raise the worker's error or ``WorkerLostError``."""
        ...

    def stop(self, worker: Any) -> None:
        """Stop a worker, whatever it is doing."""
        ...


class WorkerPool:
    """``size`` workers. While a replacement loads, the others take over its calls."""

    def __init__(self, workers: Workers, size: int) -> None:
        self._workers, self._size = workers, size
        # Workers with their slot number: those that load by their future, idle ones, and busy ones by their future.
        self._loading: dict[Any, tuple[int, Any]] = {}
        self._idle: list[tuple[int, Any]] = []
        self._busy: dict[Any, tuple[int, Any, int, WorkerCall]] = {}
        self._lost_loading = 0

    def __enter__(self) -> Self:
        for slot in range(self._size):
            self._start(slot)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        workers = [w for _, w in (*self._loading.values(), *self._idle)] + [w for _, w, *_ in self._busy.values()]
        for worker in workers:
            self._workers.stop(worker)

    def call(self, call: WorkerCall) -> Any:
        """Return the result of one call, from whichever worker is ready first."""
        return next(result for _, result in self.run([call]))

    def run_in_order(self, calls: Iterable[WorkerCall]) -> Iterator[Any]:
        """Yield results in the order of the calls; only a few calls are started ahead of the next result."""
        early, yielded = dict[int, Any](), Counter[str]()
        for number, result in self.run(calls, before=lambda: yielded["results"] + _CALLS_AHEAD * self._size):
            early[number] = result
            while yielded["results"] in early:
                yielded["results"] += 1
                yield early.pop(yielded["results"] - 1)

    def run(self, calls: Iterable[WorkerCall], before: Callable[[], float] = lambda: inf) -> Iterator[tuple[int, Any]]:
        """Yield the number and the result of every call as they arrive; calls are drawn as workers become idle.

        Only calls with a number below ``before()`` are started.
        """
        waiting, losses = _WaitingCalls(calls), Counter[int]()
        while True:
            while self._idle and (next_call := waiting.take(self._idle[0][0], self._size, before())):
                slot, worker = self._idle.pop(0)
                self._busy[self._workers.submit(worker, next_call[1])] = slot, worker, *next_call
            if not self._busy and waiting.is_empty():
                return
            future = self._workers.wait_any([*self._busy, *self._loading])
            if future in self._loading:
                self._finish_loading(future)
                continue
            slot, worker, number, call = self._busy.pop(future)
            try:
                result = self._result(future, worker)
            except WorkerLostError as lost:
                losses[number] += 1
                if losses[number] == _MAX_LOSSES:
                    raise ClusterError(
                        f"{_MAX_LOSSES} workers were lost over the same piece of work: {lost}",
                        hint="it may need more memory than a worker has; see the logs of the cluster",
                    ) from lost
                waiting.put_back(number, call)
                self._start(slot)
                continue
            self._idle.append((slot, worker))
            yield number, result

    def _result(self, future: Any, worker: Any) -> Any:
        """Return a result; a worker that fails is stopped."""
        try:
            return self._workers.result(future)
        except BaseException:
            self._workers.stop(worker)
            raise

    def _start(self, slot: int) -> None:
        worker = self._workers.start()
        self._loading[self._workers.load(worker)] = slot, worker

    def _finish_loading(self, future: Any) -> None:
        slot, worker = self._loading.pop(future)
        try:
            self._result(future, worker)
        except WorkerLostError as lost:
            self._lost_loading += 1
            if self._lost_loading >= _MAX_LOSSES * self._size:
                raise ClusterError(
                    f"workers are lost while they load: {lost}",
                    hint="they may need more memory than the machines have; see the logs of the cluster",
                ) from lost
            self._start(slot)
        else:
            self._lost_loading = 0
            self._idle.append((slot, worker))


class _WaitingCalls:
    """Calls that no worker has yet, numbered in order; a worker gets calls with its affinity first."""

    def __init__(self, calls: Iterable[WorkerCall]) -> None:
        self._rest = enumerate(calls)
        self._ahead: deque[tuple[int, WorkerCall]] = deque()

    def is_empty(self) -> bool:
        self._draw(1)
        return not self._ahead

    def put_back(self, number: int, call: WorkerCall) -> None:
        self._ahead.appendleft((number, call))

    def take(self, slot: int, slots: int, before: float) -> tuple[int, WorkerCall] | None:
        self._draw(_LOOKAHEAD)
        allowed = [n for n, (number, _) in enumerate(self._ahead) if number < before]
        if not allowed:
            return None
        affinities = ((n, self._ahead[n][1].affinity) for n in allowed)
        chosen = next((n for n, value in affinities if value is not None and value % slots == slot), allowed[0])
        taken = self._ahead[chosen]
        del self._ahead[chosen]
        return taken

    def _draw(self, count: int) -> None:
        while len(self._ahead) < count and (entry := next(self._rest, None)) is not None:
            self._ahead.append(entry)
