"""Every call is answered once, whatever workers are lost."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.apps.cluster.pool import WorkerCall, WorkerLostError, WorkerPool
from zicl.exceptions import ClusterError, UsageError


@dataclass
class Scripted:
    """A crew that answers with a call's argument, doubled, in an order and with losses that are drawn."""

    draw: object
    lost_on: dict = field(default_factory=dict)
    hired: int = 0
    dismissed: list = field(default_factory=list)
    given: list = field(default_factory=list)
    futures: int = 0

    def hire(self):
        self.hired += 1
        return self.hired

    def ready(self, worker):
        self.futures += 1
        return self.futures, worker, None

    def start(self, worker, call):
        self.futures += 1
        self.given.append((worker, call.argument))
        return self.futures, worker, call

    def first(self, futures):
        return futures[self.draw(len(futures))]

    def result(self, future):
        _, _, call = future
        if call is not None and self.lost_on.get(call.argument, 0) > 0:
            self.lost_on[call.argument] -= 1
            raise WorkerLostError("killed")
        return None if call is None else 2 * call.argument

    def dismiss(self, worker):
        self.dismissed.append(worker)


@given(data=st.data(), size=st.integers(1, 4), count=st.integers(0, 90), homes=st.booleans())
def test_every_call_is_answered_once_and_all_workers_are_let_go(data, size, count, homes):
    lost = data.draw(st.dictionaries(st.integers(0, 89), st.integers(0, 2), max_size=20))
    crew = Scripted(lambda n: data.draw(st.integers(0, n - 1)), lost_on=lost)
    calls = [WorkerCall("double", n, home=n if homes else None) for n in range(count)]
    with WorkerPool(crew, size) as pool:
        assert sorted(pool.run(calls)) == [(n, 2 * n) for n in range(count)]
    assert sorted(crew.dismissed) == list(range(1, crew.hired + 1))


@given(data=st.data(), size=st.integers(1, 4))
def test_answers_can_be_had_in_order_and_calls_are_drawn_as_they_are_needed(data, size):
    crew = Scripted(lambda n: data.draw(st.integers(0, n - 1)))
    with WorkerPool(crew, size) as pool:
        assert list(pool.in_order(WorkerCall("double", n) for n in range(30))) == [2 * n for n in range(30)]
        assert pool.ask(WorkerCall("double", 7)) == 14


def test_a_worker_gets_its_own_calls_first():
    crew = Scripted(lambda _: 0)
    with WorkerPool(crew, 2) as pool:
        list(pool.run([WorkerCall("double", n, home=n) for n in range(8)]))
    by_worker = {worker: [n for w, n in crew.given if w == worker] for worker in (1, 2)}
    # The other worker never becomes ready here, so that its calls come last.
    assert by_worker == {1: [0, 2, 4, 6, 1, 3, 5, 7], 2: []}


def test_a_call_that_loses_three_workers_is_not_tried_for_ever():
    crew = Scripted(lambda _: 0, lost_on={5: 99})
    with WorkerPool(crew, 2) as pool, pytest.raises(ClusterError, match="3 workers were lost"):
        list(pool.run([WorkerCall("double", n) for n in range(9)]))
    assert sorted(crew.dismissed) == list(range(1, crew.hired + 1))


def test_workers_that_die_while_they_load_are_not_replaced_for_ever():
    class Dying(Scripted):
        def result(self, future):
            raise WorkerLostError("no memory")

    crew = Dying(lambda _: 0)
    with WorkerPool(crew, 2) as pool, pytest.raises(ClusterError, match="while they load"):
        pool.ask(WorkerCall("double", 1))
    assert sorted(crew.dismissed) == list(range(1, crew.hired + 1))


def test_an_error_of_the_work_itself_is_passed_on():
    class Wrong(Scripted):
        def result(self, future):
            if future[2] is not None:
                raise UsageError("wrong text")

    crew = Wrong(lambda _: 0)
    with WorkerPool(crew, 2) as pool, pytest.raises(UsageError, match="wrong text"):
        pool.ask(WorkerCall("double", 1))
    assert sorted(crew.dismissed) == [1, 2]


def test_few_answers_come_long_before_their_turn():
    class Slow(Scripted):
        def first(self, futures):
            # The very first call is answered only when nothing else is left.
            return next((f for f in futures if f[2] is None or f[2].argument != 0), futures[0])

    crew = Slow(lambda _: 0)
    with WorkerPool(crew, 2) as pool:
        answers = pool.in_order(WorkerCall("double", n) for n in range(50))
        assert next(answers) == 0
        assert len(crew.given) <= 2 * 4 + 2
        assert list(answers) == [2 * n for n in range(1, 50)]


def test_losses_while_loading_are_forgotten_when_one_worker_is_ready():
    class Flaky(Scripted):
        loads = 0

        def result(self, future):
            if future[2] is None:
                self.loads += 1
                if self.loads % 3:
                    raise WorkerLostError("no memory")
            return super().result(future)

    crew = Flaky(lambda _: 0, lost_on=dict.fromkeys(range(20), 1))
    with WorkerPool(crew, 1) as pool:
        assert len(list(pool.run([WorkerCall("double", n) for n in range(20)]))) == 20
