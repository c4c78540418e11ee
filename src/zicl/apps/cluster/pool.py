"""Jobs handed to workers, of which some may be lost: a lost one is replaced, and its job is done again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import Any, Protocol, Self

from zicl.exceptions import ClusterError

# As many workers may be lost over one job before it, and not a machine, is held to be the reason.
_TRIES = 3
# Of answers that are wanted in order, so many a worker may be there before their turn.
_EARLY = 4
# Among so many waiting jobs a worker looks for one of its own.
_AHEAD = 64


class WorkerLostError(Exception):
    """A worker is gone: its process or its machine died."""


@dataclass(frozen=True)
class WorkerCall:
    """What a worker is asked to do. Calls of one ``home`` go to one worker as long as none is idle."""

    method: str
    argument: Any = None
    home: int | None = None


class Workers(Protocol):
    """Who makes workers and carries calls to them; a worker and a future may be anything, futures hashable."""

    def hire(self) -> Any:
        """A new worker."""
        ...

    def ready(self, worker: Any) -> Any:
        """The future of its having loaded what it needs."""
        ...

    def start(self, worker: Any, call: WorkerCall) -> Any:
        """The future of a call's answer."""
        ...

    def first(self, futures: Sequence[Any]) -> Any:
        """Waits until one is there."""
        ...

    def result(self, future: Any) -> Any:
        """The answer, or the error the worker raised, or ``WorkerLostError``."""
        ...

    def dismiss(self, worker: Any) -> None:
        """Let a worker go, whatever it is doing."""
        ...


class WorkerPool:
    """So many workers of a crew. While a replacement is awaited the others do its share."""

    def __init__(self, crew: Workers, size: int) -> None:
        self._crew, self._size = crew, size
        # Workers by their place: those that load, by the future of their being ready, and those without a job.
        self._loading: dict[Any, tuple[int, Any]] = {}
        self._idle: list[tuple[int, Any]] = []
        self._busy: dict[Any, tuple[int, Any, int, WorkerCall]] = {}
        self._lost_loading = 0

    def __enter__(self) -> Self:
        for place in range(self._size):
            self._hire(place)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        workers = [w for _, w in (*self._loading.values(), *self._idle)] + [w for _, w, *_ in self._busy.values()]
        for worker in workers:
            self._crew.dismiss(worker)

    def ask(self, call: WorkerCall) -> Any:
        """The answer to one call, from whichever worker is ready first."""
        return next(answer for _, answer in self.run([call]))

    def in_order(self, calls: Iterable[WorkerCall]) -> Iterator[Any]:
        """The answers in the order of the calls. Only some are begun before an earlier one is there."""
        early, given = dict[int, Any](), Counter[str]()
        for number, answer in self.run(calls, before=lambda: given["answers"] + _EARLY * self._size):
            early[number] = answer
            while given["answers"] in early:
                given["answers"] += 1
                yield early.pop(given["answers"] - 1)

    def run(self, calls: Iterable[WorkerCall], before: Callable[[], float] = lambda: inf) -> Iterator[tuple[int, Any]]:
        """The number and the answer of every call, as they come. Calls are drawn as workers become idle.

        No call is begun unless its number is below ``before()``.
        """
        waiting, losses = _PendingJobs(calls), Counter[int]()
        while True:
            while self._idle and (found := waiting.take(self._idle[0][0], self._size, before())):
                place, worker = self._idle.pop(0)
                self._busy[self._crew.start(worker, found[1])] = place, worker, *found
            if not self._busy and waiting.is_empty():
                return
            future = self._crew.first([*self._busy, *self._loading])
            if future in self._loading:
                self._welcome(future)
                continue
            place, worker, number, call = self._busy.pop(future)
            try:
                answer = self._result(future, worker)
            except WorkerLostError as lost:
                losses[number] += 1
                if losses[number] == _TRIES:
                    raise ClusterError(
                        f"{_TRIES} workers were lost over the same piece of work: {lost}",
                        hint="it may need more memory than a worker has; see the cluster's own logs",
                    ) from lost
                waiting.put_back(number, call)
                self._hire(place)
                continue
            self._idle.append((place, worker))
            yield number, answer

    def _result(self, future: Any, worker: Any) -> Any:
        """An answer; a worker that has none is let go."""
        try:
            return self._crew.result(future)
        except BaseException:
            self._crew.dismiss(worker)
            raise

    def _hire(self, place: int) -> None:
        worker = self._crew.hire()
        self._loading[self._crew.ready(worker)] = place, worker

    def _welcome(self, future: Any) -> None:
        place, worker = self._loading.pop(future)
        try:
            self._result(future, worker)
        except WorkerLostError as lost:
            self._lost_loading += 1
            if self._lost_loading >= _TRIES * self._size:
                raise ClusterError(
                    f"workers are lost while they load: {lost}",
                    hint="they may need more memory than the machines have; see the cluster's own logs",
                ) from lost
            self._hire(place)
        else:
            self._lost_loading = 0
            self._idle.append((place, worker))


class _PendingJobs:
    """Calls that no worker has, numbered in their order; of those ahead a worker gets one of its own first."""

    def __init__(self, calls: Iterable[WorkerCall]) -> None:
        self._rest = enumerate(calls)
        self._ahead: deque[tuple[int, WorkerCall]] = deque()

    def is_empty(self) -> bool:
        self._look(1)
        return not self._ahead

    def put_back(self, number: int, call: WorkerCall) -> None:
        self._ahead.appendleft((number, call))

    def take(self, place: int, places: int, before: float) -> tuple[int, WorkerCall] | None:
        self._look(_AHEAD)
        open_to_it = [n for n, (number, _) in enumerate(self._ahead) if number < before]
        if not open_to_it:
            return None
        homes = ((n, self._ahead[n][1].home) for n in open_to_it)
        chosen = next((n for n, home in homes if home is not None and home % places == place), open_to_it[0])
        found = self._ahead[chosen]
        del self._ahead[chosen]
        return found

    def _look(self, count: int) -> None:
        while len(self._ahead) < count and (entry := next(self._rest, None)) is not None:
            self._ahead.append(entry)
