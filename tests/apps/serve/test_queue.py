"""The queue alone, with works that are only names."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.waiting import WAIT_SECONDS
from zicl._util.cache import BoundedCache
from zicl.apps.serve.queue import (
    MOST_LONG_JOBS,
    LongJobsFullError,
    Queue,
    QueueFullError,
    ServerMetrics,
    StoppingError,
    Unfinished,
)


@dataclass(frozen=True)
class Named:
    key: str


@dataclass(frozen=True)
class Done:
    key: str
    weight: int = 1


class Worker:
    """Answers with the names, when its gate is open."""

    def __init__(self, *, opened=True):
        self.groups, self.gate, self.begun = [], threading.Event(), threading.Event()
        if opened:
            self.gate.set()

    def __call__(self, works):
        self.begun.set()
        assert self.gate.wait(WAIT_SECONDS)
        self.groups.append([work.key for work in works])
        return [ValueError(work.key) if work.key.startswith("bad") else Done(work.key) for work in works]


@asynccontextmanager
async def running(worker, *, places=8, group=4, kept=100):
    with ThreadPoolExecutor(1) as executor:
        queue = Queue(worker, executor, places=places, cache=BoundedCache(kept), metrics=ServerMetrics(), group=group)
        task = asyncio.create_task(queue.run())
        try:
            yield queue
        finally:
            worker.gate.set()
            queue.stop()
            await task


async def begun(worker):
    while not worker.begun.is_set():
        await asyncio.sleep(0.001)


@asynccontextmanager
async def busy(key="a", **options):
    """A queue whose worker is held at a first work."""
    worker = Worker(opened=False)
    async with running(worker, **options) as queue:
        first = queue.admit(works(key))
        await begun(worker)
        yield queue, worker, first


async def results(ticket):
    found = dict([await ticket.next(WAIT_SECONDS) for _ in range(ticket.count)])
    return [found[number] for number in range(ticket.count)]


def works(*keys):
    return [Named(key) for key in keys]


def test_results_come_with_their_places():
    async def run():
        async with running(Worker()) as queue:
            return await results(queue.admit(works("a", "b", "c", "a")))

    assert asyncio.run(run()) == [Done("a"), Done("b"), Done("c"), Done("a")]


def test_equal_work_in_flight_is_computed_once():
    async def run():
        async with busy() as (queue, worker, first):
            second = queue.admit(works("a", "b"))
            third = queue.admit(works("b"))
            worker.gate.set()
            return [await results(ticket) for ticket in (first, second, third)], worker.groups

    found, groups = asyncio.run(run())
    assert found == [[Done("a")], [Done("a"), Done("b")], [Done("b")]]
    assert groups == [["a"], ["b"]]


def test_a_known_answer_is_not_computed_again_and_takes_no_place():
    async def run():
        worker = Worker()
        async with running(worker, places=1) as queue:
            for _ in range(3):
                assert await results(queue.admit(works("a"))) == [Done("a")]
            assert await results(queue.admit(works("a", "b", "a"))) == [Done("a"), Done("b"), Done("a")]
            return worker.groups

    assert asyncio.run(run()) == [["a"], ["b"]]


def test_a_failure_is_told_and_not_kept():
    async def run():
        worker = Worker()
        async with running(worker) as queue:
            for _ in range(2):
                good, bad = await results(queue.admit(works("a", "bad")))
                assert good == Done("a")
                assert isinstance(bad, ValueError)
            return worker.groups

    assert asyncio.run(run()) == [["a", "bad"], ["bad"]]


def test_a_full_queue_refuses_the_whole_request_and_names_a_time():
    async def run():
        async with busy(places=2) as (queue, worker, running_now):
            waiting = queue.admit(works("b", "c"))
            with pytest.raises(QueueFullError) as refused:
                queue.admit(works("d"))
            # What is under way already needs no place.
            joined = queue.admit(works("a", "c"))
            worker.gate.set()
            for ticket in (running_now, waiting, joined):
                await results(ticket)
            assert await results(queue.admit(works("d"))) == [Done("d")]
            return refused.value

    refused = asyncio.run(run())
    assert (refused.waiting, refused.places) == (2, 2)
    assert refused.seconds > 0


def test_a_client_that_leaves_frees_its_places():
    async def run():
        async with busy(places=2) as (queue, worker, first):
            gone = queue.admit(works("b", "c"))
            gone.close()
            assert queue.waiting == 0
            other = queue.admit(works("d", "e"))
            worker.gate.set()
            await results(first)
            await results(other)
            return worker.groups

    assert asyncio.run(run()) == [["a"], ["d", "e"]]


def test_what_another_client_waits_for_stays_when_the_first_leaves():
    async def run():
        async with busy() as (queue, worker, first):
            gone = queue.admit(works("b", "c"))
            other = queue.admit(works("c"))
            gone.close()
            worker.gate.set()
            assert await results(other) == [Done("c")]
            await results(first)
            return worker.groups

    assert asyncio.run(run()) == [["a"], ["c"]]


async def order(*requests, **options):
    """In which order the jobs of several requests are computed, all of which wait when the worker becomes free."""
    async with busy("first", places=1000, **options) as (queue, worker, first):
        tickets = [queue.admit(works(*keys)) for keys in requests]
        worker.gate.set()
        for ticket in (first, *tickets):
            await results(ticket)
        return [key for group in worker.groups for key in group][1:]


def many(name, count):
    return [f"{name}{number}" for number in range(count)]


def test_a_small_request_goes_between_the_texts_of_large_ones():
    larges = [many(f"large {letter} ", 100) for letter in "abcdefgh"]
    found = asyncio.run(order(*larges, ["small"], ["other", "two"], group=1))
    assert found[:3] == ["small", "other", "two"]


def test_a_small_request_does_not_wait_for_a_text_that_it_shares_with_a_large_one():
    found = asyncio.run(order([*many("large", 20), "same"], ["same"], group=1))
    assert found == ["same", *many("large", 20)]


def test_what_a_small_request_shared_with_others_is_the_next_smallest_ones_when_it_leaves():
    async def run():
        async with busy("first", places=1000, group=1) as (queue, worker, first):
            tickets = [queue.admit(works(*keys)) for keys in ([*many("large", 20), "same"], ["small", "same"])]
            queue.admit(works("same")).close()
            worker.gate.set()
            for ticket in (first, *tickets):
                await results(ticket)
            return [key for group in worker.groups for key in group][1:]

    assert asyncio.run(run()) == ["same", "small", *many("large", 20)]


def test_a_text_that_is_given_twice_is_one():
    found = asyncio.run(order(["a", "b", "c", "d"], ["same"] * 8, group=1))
    assert found[0] == "same"


def test_equal_large_requests_are_computed_once_and_in_order():
    found = asyncio.run(order(many("large", 20), many("large", 20), group=1))
    assert found == many("large", 20)


def test_requests_of_about_the_same_size_take_turns():
    found = asyncio.run(order(many("a", 20), many("b", 24), group=1))
    assert found[:6] == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_large_request_has_its_turn_however_many_small_ones_come():
    async def run():
        async with busy("first", places=1000, group=1) as (queue, worker, first):
            large = queue.admit(works(*many("large", 4)))
            small = [queue.admit(works(f"small {number}")) for number in range(3)]
            worker.gate.set()
            # At any time some small ones wait.
            for number in range(3, 60):
                small.append(queue.admit(works(f"small {number}")))
                await results(small.pop(0))
            for ticket in (first, large, *small):
                await results(ticket)
            return [key for group in worker.groups for key in group][1:]

    found = asyncio.run(run())
    places = [found.index(key) for key in many("large", 4)]
    assert places[0] == 7
    assert all(later - earlier < 15 for earlier, later in pairwise(places))


def test_stopping_finishes_what_runs_and_tells_what_waits():
    async def run():
        async with busy() as (queue, worker, runs):
            waits = queue.admit(works("b", "a"))
            queue.stop()
            worker.gate.set()
            first, second = await results(runs), await results(waits)
            with pytest.raises(StoppingError):
                queue.admit(works("c"))
            return first, second, worker.groups

    first, (told, shared), groups = asyncio.run(run())
    assert first == [Done("a")]
    assert isinstance(told, StoppingError)
    assert shared == Done("a")
    assert groups == [["a"]]


def test_a_worker_that_breaks_is_told_to_all_who_wait():
    def broken(works):
        raise MemoryError("no room")

    async def run():
        with ThreadPoolExecutor(1) as executor:
            queue = Queue(broken, executor, places=4, cache=BoundedCache(4), metrics=ServerMetrics())
            task = asyncio.create_task(queue.run())
            found = await results(queue.admit(works("a", "b")))
            queue.stop()
            await task
            return found

    assert [type(each) for each in asyncio.run(run())] == [MemoryError, MemoryError]


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6), min_size=1, max_size=8),
    st.sets(st.integers(0, 7)),
    st.integers(1, 5),
    st.integers(0, 8),
)
def test_whoever_stays_gets_every_answer_and_nothing_is_computed_twice(requests, leaving, group, places):
    async def run():
        worker = Worker(opened=False)
        async with running(worker, places=max(1, places), group=group) as queue:
            tickets = {}
            for number, keys in enumerate(requests):
                try:
                    tickets[number] = queue.admit(works(*keys))
                except QueueFullError:
                    continue
                await asyncio.sleep(0)
                assert 0 <= queue.waiting <= max(1, places)
            for number in leaving & set(tickets):
                tickets.pop(number).close()
            wanted = {key for number in tickets for key in requests[number]}
            worker.gate.set()
            for number, ticket in tickets.items():
                assert await results(ticket) == [Done(key) for key in requests[number]]
            assert queue.waiting == 0
            return wanted, [key for each in worker.groups for key in each]

    wanted, computed = asyncio.run(run())
    assert len(computed) == len(set(computed))
    assert wanted <= set(computed)


def test_a_client_may_leave_after_the_end():
    async def run():
        async with busy() as (queue, worker, runs):
            waits = queue.admit(works("b", "c"))
            queue.stop()
            waits.close()
            worker.gate.set()
            assert await results(runs) == [Done("a")]
            runs.close()

    asyncio.run(run())


@dataclass(frozen=True)
class Long:
    key: str
    size: int = 50


class Turns(Worker):
    """A worker whose long jobs need three turns."""

    def __call__(self, works):
        outcomes = super().__call__(works)
        turns = [key for group in self.groups for key in group]
        return [
            Unfinished("reading", turns.count(work.key), 3)
            if isinstance(work, Long) and turns.count(work.key) < 3
            else outcome
            for work, outcome in zip(works, outcomes, strict=True)
        ]


def test_a_long_job_waits_again_after_each_turn():
    async def run():
        worker = Turns(opened=False)
        async with running(worker, group=1) as queue:
            long = queue.admit([Long("long")])
            await begun(worker)
            short = queue.admit(works("short"))
            worker.gate.set()
            told = [(await long.next(WAIT_SECONDS))[1] for _ in range(3)]
            assert await results(short) == [Done("short")]
            return told, [key for group in worker.groups for key in group], queue.waiting

    told, order, waiting = asyncio.run(run())
    assert told == [Unfinished("reading", 1, 3), Unfinished("reading", 2, 3), Done("long")]
    assert order == ["long", "short", "long", "long"]
    assert waiting == 0


@pytest.mark.parametrize("ends", ["leaving", "stopping"])
def test_a_long_job_that_nobody_waits_for_has_no_other_turn(ends):
    async def run():
        worker = Turns(opened=False)
        async with running(worker, group=1) as queue:
            long = queue.admit([Long("long")])
            await begun(worker)
            long.close() if ends == "leaving" else queue.stop()
            worker.gate.set()
            if ends == "leaving":
                assert await results(queue.admit(works("next"))) == [Done("next")]
            else:
                assert isinstance((await long.next(WAIT_SECONDS))[1], StoppingError)
            assert queue.waiting == 0
            assert not queue._entries
            return [key for group in worker.groups for key in group].count("long")

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize("group", [1, 4])
def test_a_long_job_is_finished_before_the_next_begins(group):
    async def run():
        worker = Turns(opened=False)
        async with running(worker, group=group) as queue:
            first = queue.admit(works("first"))
            await begun(worker)
            tickets = [queue.admit([Long(key)]) for key in ("long a", "long b", "long c")]
            short = queue.admit(works("short"))
            worker.gate.set()
            for ticket in tickets:
                assert [(await ticket.next(WAIT_SECONDS))[1] for _ in range(3)][-1].key.startswith("long")
            await results(first)
            await results(short)
            return [key for group in worker.groups for key in group]

    order = asyncio.run(run())
    assert order.index("short") <= 3
    assert [key for key in order if key.startswith("long")] == [f"long {name}" for name in "abc" for _ in range(3)]


def test_a_long_job_whose_client_leaves_between_its_turns_holds_nobody_up():
    async def run():
        worker = Turns(opened=False)
        async with running(worker, group=1) as queue:
            first = queue.admit([Long("first")])
            await begun(worker)
            second = queue.admit([Long("second")])
            worker.gate.set()
            await first.next(WAIT_SECONDS)
            first.close()
            return [(await second.next(WAIT_SECONDS))[1] for _ in range(3)][-1]

    assert asyncio.run(run()) == Done("second")


def test_few_long_jobs_are_admitted_at_once():
    async def run():
        worker = Turns(opened=False)
        async with running(worker, places=100, group=1) as queue:
            long = [queue.admit([Long(f"long {number}")]) for number in range(MOST_LONG_JOBS)]
            with pytest.raises(LongJobsFullError) as refused:
                queue.admit([Long("another")])
            # An equal one is under way already, and short ones are no long ones.
            joined, short = queue.admit([Long("long 0")]), queue.admit(works("short"))
            long.pop().close()
            long.append(queue.admit([Long("another")]))
            worker.gate.set()
            for ticket in (*long, joined):
                while isinstance((await ticket.next(WAIT_SECONDS))[1], Unfinished):
                    pass
            assert await results(short) == [Done("short")]
            return refused.value

    refused = asyncio.run(run())
    assert (refused.waiting, refused.places) == (MOST_LONG_JOBS, MOST_LONG_JOBS)
    assert refused.seconds > 0
