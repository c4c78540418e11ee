"""The options of commands whose work a Ray cluster can do, and the workers they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl._progress import silent
from zicl.cli._progress import say
from zicl.cli._remote import REMOTE, RemoteChoice
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl._progress import Report
    from zicl.classify import ZICLClassifier
    from zicl.evaluate.experiment import Experiment
    from zicl.evaluate.run import Compute
    from zicl.evaluate.world import World
    from zicl.lm.base import LanguageModel
    from zicl.retrieve.index import Index
    from zicl.retrieve.search import Elsewhere
    from zicl.spread.cluster import Cluster
    from zicl.spread.pool import Pool

OnOption = Annotated[
    str | None, typer.Option("--on", help="ray, or the address of a Ray cluster, to spread the work over its machines.")
]
WorkersOption = Annotated[int | None, typer.Option("--workers", help="With --on: how many workers. [all that fit]")]
SearchersOption = Annotated[
    int,
    typer.Option("--searchers", help="With --on: so many more workers search the index, a part each. [none]", min=0),
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", help="With --on: CPU threads of a worker.", min=1)]


@contextmanager
def cluster(on: str, workers: int | None, threads: int | None, searchers: int = 0) -> Iterator[Cluster]:
    """The cluster that the options name; cores that search do not also score."""
    from zicl.spread.cluster import connected

    with connected(on, workers=workers, threads=threads, reserved=searchers) as found:
        say(f"{found.workers} worker{'s' if found.workers > 1 else ''} with {found.threads} threads each on {on}")
        yield found


def check_unused(on: str | None, **values: Any) -> None:
    """Options that mean nothing without a cluster are not taken in silence."""
    given = [name for name, value in values.items() if value]
    if on is None and given:
        raise UsageError(f"--{given[0]} is for work on a cluster", hint="add --on ray, or leave it out")


@contextmanager
def evaluating(choice: RemoteChoice, world: World, found: Cluster, searchers: int, report: Report) -> Iterator[Compute]:
    """Workers for an evaluation."""
    from zicl.spread.crew import RayCrew
    from zicl.spread.evaluate import EvaluationWorker, Spread
    from zicl.spread.paths import absolute
    from zicl.spread.pool import Pool

    searched = _searched(world.index, searchers)
    share = _shared(choice, found)
    make = partial(_world, absolute(world.experiment), share, searched, offline=world.offline)
    report("starting the workers", 0, None)
    with Pool(RayCrew(EvaluationWorker, (make, found.threads), found), found.workers) as pool:
        yield Spread(pool)


@contextmanager
def classifying(choice: RemoteChoice, classifier: ZICLClassifier, found: Cluster, searchers: int) -> Iterator[Pool]:
    """Workers that label texts."""
    from zicl.lm.http.address import is_remote
    from zicl.retrieve.index import Index
    from zicl.spread.classify import ClassifyWorker, Packed
    from zicl.spread.crew import RayCrew
    from zicl.spread.pool import Pool

    index, packed = classifier.index_, Packed.of(classifier)
    searched = _searched(index if isinstance(index, Index) else None, searchers)
    open_lm: Callable[[], Any] | None = None
    if is_remote(packed.lm):
        open_lm = partial(_language_model, _shared(choice, found), packed.lm, offline=packed.offline)
    arguments = packed, open_lm, searched, found.threads
    with Pool(RayCrew(ClassifyWorker, arguments, found), found.workers) as pool:
        yield pool


def _searched(index: Index | None, count: int) -> Elsewhere | None:
    if not count:
        return None
    if index is None:
        raise UsageError("--searchers: no corpus is searched here", hint="leave it out")
    from zicl.spread.search import searchers

    return searchers(index, count)


def _shared(choice: RemoteChoice, found: Cluster) -> RemoteChoice:
    """A worker's part of what may be spent at a server; its connections are its own."""
    own = {name: getattr(choice, name) for name in REMOTE}
    part = RemoteChoice(**own)
    return part if part.max_cost is None else replace(part, max_cost=part.max_cost / found.workers)


def _language_model(choice: RemoteChoice, name: str, *, offline: bool) -> str | LanguageModel:
    return choice.language_model(name, offline=offline)


def _world(experiment: Experiment, choice: RemoteChoice, searched: Elsewhere | None, *, offline: bool) -> World:
    """Made on a worker."""
    from zicl.cli._options import go_offline
    from zicl.evaluate.world import World
    from zicl.retrieve.index import Index

    if offline:
        go_offline()
    lm = choice.language_model(experiment.lm, offline=offline)
    index = None
    if searched is not None and experiment.corpus is not None:
        index = Index.open(experiment.corpus.path, offline=offline).searched_by(searched)
    return World(experiment, lm=None if isinstance(lm, str) else lm, index=index, offline=offline, report=silent)
