"""Every call gives one result, whichever workers are lost."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.apps.cluster.pool import WorkerCall, WorkerLostError, WorkerPool
from zicl.exceptions import ClusterError, UsageError


@dataclass
class Scripted:
    """Workers that double a call's argument, with a drawn order of results and drawn losses."""

    draw: object
    lost_on: dict = field(default_factory=dict)
    started: int = 0
    stopped: list = field(default_factory=list)
    given: list = field(default_factory=list)
    futures: int = 0

    def start(self):
        self.started += 1
        return self.started

    def load(self, worker):
        self.futures += 1
        return self.futures, worker, None

    def submit(self, worker, call):
        self.futures += 1
        self.given.append((worker, call.argument))
        return self.futures, worker, call

    def wait_any(self, futures):
        return futures[self.draw(len(futures))]

    def result(self, future):
        _, _, call = future
        if call is not None and self.lost_on.get(call.argument, 0) > 0:
            self.lost_on[call.argument] -= 1
            raise WorkerLostError("killed")
        return None if call is None else 2 * call.argument

    def stop(self, worker):
        self.stopped.append(worker)


@given(data=st.data(), size=st.integers(1, 4), count=st.integers(0, 90), affine=st.booleans())
def test_every_call_gives_one_result_and_all_workers_are_stopped(data, size, count, affine):
    lost = data.draw(st.dictionaries(st.integers(0, 89), st.integers(0, 2), max_size=20))
    workers = Scripted(lambda n: data.draw(st.integers(0, n - 1)), lost_on=lost)
    calls = [WorkerCall("double", n, affinity=n if affine else None) for n in range(count)]
    with WorkerPool(workers, size) as pool:
        assert sorted(pool.run(calls)) == [(n, 2 * n) for n in range(count)]
    assert sorted(workers.stopped) == list(range(1, workers.started + 1))


@given(data=st.data(), size=st.integers(1, 4))
def test_results_can_be_had_in_order(data, size):
    workers = Scripted(lambda n: data.draw(st.integers(0, n - 1)))
    with WorkerPool(workers, size) as pool:
        assert list(pool.run_in_order(WorkerCall("double", n) for n in range(30))) == [2 * n for n in range(30)]
        assert pool.call(WorkerCall("double", 7)) == 14


def test_a_worker_gets_calls_of_its_affinity_first():
    workers = Scripted(lambda _: 0)
    with WorkerPool(workers, 2) as pool:
        list(pool.run([WorkerCall("double", n, affinity=n) for n in range(8)]))
    by_worker = {worker: [n for w, n in workers.given if w == worker] for worker in (1, 2)}
    # The other worker never becomes ready here, so that its calls come last.
    assert by_worker == {1: [0, 2, 4, 6, 1, 3, 5, 7], 2: []}


def test_a_call_that_loses_three_workers_is_not_tried_for_ever():
    workers = Scripted(lambda _: 0, lost_on={5: 99})
    with WorkerPool(workers, 2) as pool, pytest.raises(ClusterError, match="3 workers were lost"):
        list(pool.run([WorkerCall("double", n) for n in range(9)]))
    assert sorted(workers.stopped) == list(range(1, workers.started + 1))


def test_workers_that_die_while_they_load_are_not_replaced_for_ever():
    class Dying(Scripted):
        def result(self, future):
            raise WorkerLostError("no memory")

    workers = Dying(lambda _: 0)
    with WorkerPool(workers, 2) as pool, pytest.raises(ClusterError, match="while they load"):
        pool.call(WorkerCall("double", 1))
    assert sorted(workers.stopped) == list(range(1, workers.started + 1))


def test_errors_of_a_call_are_raised():
    class Wrong(Scripted):
        def result(self, future):
            if future[2] is not None:
                raise UsageError("wrong text")

    workers = Wrong(lambda _: 0)
    with WorkerPool(workers, 2) as pool, pytest.raises(UsageError, match="wrong text"):
        pool.call(WorkerCall("double", 1))
    assert sorted(workers.stopped) == [1, 2]


def test_few_calls_run_ahead_of_the_next_result():
    class Slow(Scripted):
        def wait_any(self, futures):
            # The first call ends only when nothing else is left.
            return next((f for f in futures if f[2] is None or f[2].argument != 0), futures[0])

    workers = Slow(lambda _: 0)
    with WorkerPool(workers, 2) as pool:
        results = pool.run_in_order(WorkerCall("double", n) for n in range(50))
        assert next(results) == 0
        assert len(workers.given) <= 2 * 4 + 2
        assert list(results) == [2 * n for n in range(1, 50)]


def test_losses_while_loading_are_forgotten_when_one_worker_has_loaded():
    class Flaky(Scripted):
        loaded = 0

        def result(self, future):
            if future[2] is None:
                self.loaded += 1
                if self.loaded % 3:
                    raise WorkerLostError("no memory")
            return super().result(future)

    workers = Flaky(lambda _: 0, lost_on=dict.fromkeys(range(20), 1))
    with WorkerPool(workers, 1) as pool:
        assert len(list(pool.run([WorkerCall("double", n) for n in range(20)]))) == 20
