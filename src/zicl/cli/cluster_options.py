"""The options of commands whose work a Ray cluster can do, and the workers they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl.cli.console import print_status
from zicl.cli.model_options import REMOTE, RemoteOptions
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.apps.cluster.connect import Cluster, IndexLocation
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.classifier import ZICLClassifier
    from zicl.lab.evaluate.context import ExperimentContext
    from zicl.lab.evaluate.experiment import Experiment
    from zicl.lab.evaluate.run import Compute
    from zicl.lm.base import LanguageModel
    from zicl.retrieve.index import Index
    from zicl.retrieve.search import RemoteSearch

OnOption = Annotated[
    str | None, typer.Option("--on", help="ray, or the address of a Ray cluster, to spread the work over its machines.")
]
WorkersOption = Annotated[int | None, typer.Option("--workers", help="With --on: how many workers. [all that fit]")]
SearchersOption = Annotated[
    int,
    typer.Option("--searchers", help="With --on: so many further workers search the index, a part each. [none]", min=0),
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", help="CPU threads to use; with --on, those of a worker.", min=1)
]


@contextmanager
def cluster(on: str, workers: int | None, threads: int | None) -> Iterator[Cluster]:
    """The cluster that the options name."""
    from zicl.apps.cluster.connect import connect

    with connect(on, workers=workers, threads=threads) as found:
        told = f"{found.workers} worker{'s' if found.workers > 1 else ''}"
        print_status(f"{told} with {found.threads} thread{'s' if found.threads > 1 else ''} each on {on}")
        yield found


def check_unused(on: str | None, **values: Any) -> None:
    """Options that mean nothing without a cluster are not taken in silence."""
    given = [name for name, value in values.items() if value]
    if on is None and given:
        raise UsageError(f"--{given[0]} is for work on a cluster", hint="add --on ray, or leave it out")


def check_cost(choice: RemoteOptions) -> None:
    """Workers that do not know of each other cannot keep one limit, nor one account."""
    for option in ("max_cost", "price_in", "price_out"):
        if getattr(choice, option) is not None:
            raise UsageError(
                f"--{option.replace('_', '-')}: several workers cannot keep one account of what is spent",
                hint="leave out --on: one process can send a server as many requests at once as it takes, --requests",
            )


@contextmanager
def evaluating(
    choice: RemoteOptions, world: ExperimentContext, found: Cluster, searchers: int, report: ProgressReport
) -> Iterator[Compute]:
    """Workers for an evaluation."""
    from zicl.apps.cluster.connect import IndexLocation, WorkerSetup, absolute
    from zicl.apps.cluster.evaluate import ClusterCompute, EvaluationWorker
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.apps.cluster.ray_workers import RayWorkers

    # Opened here first: a corpus that is only a recipe is built now, where one sees it.
    index = world.index
    place = None if index is None else IndexLocation.of(index)
    searched = _searched(index, searchers)
    make = partial(_world, absolute(world.experiment), place, searched, _options_of(choice), offline=world.offline)
    arguments = make, WorkerSetup(found.threads, world.offline)
    report("starting the workers", 0, None)
    with WorkerPool(RayWorkers(EvaluationWorker, arguments, found, print_status), found.workers) as pool:
        yield ClusterCompute(pool, world.hashes)


@contextmanager
def classifying(
    choice: RemoteOptions, classifier: ZICLClassifier, found: Cluster, searchers: int
) -> Iterator[WorkerPool]:
    """Workers that label texts."""
    from zicl.apps.cluster.classify import ClassifyWorker, PortableClassifier
    from zicl.apps.cluster.connect import WorkerSetup
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.apps.cluster.ray_workers import RayWorkers
    from zicl.lm.remote.settings import is_remote
    from zicl.retrieve.index import Index

    index, packed = classifier.index_, PortableClassifier.of(classifier)
    searched = _searched(index if isinstance(index, Index) else None, searchers)
    open_lm: Callable[[], Any] | None = None
    if is_remote(packed.lm):
        open_lm = partial(_language_model, _options_of(choice), packed.lm, offline=packed.offline)
    arguments = packed, WorkerSetup(found.threads, packed.offline), open_lm, searched
    with WorkerPool(RayWorkers(ClassifyWorker, arguments, found, print_status), found.workers) as pool:
        yield pool


def _searched(index: Index | None, count: int) -> RemoteSearch | None:
    if not count:
        return None
    if index is None:
        raise UsageError("--searchers: no corpus is searched here", hint="leave it out")
    from zicl.apps.cluster.search import searchers

    return searchers(index, count)


def _options_of(choice: RemoteOptions) -> RemoteOptions:
    """The options for a server alone; a worker's connections are its own."""
    from zicl.apps.cluster.connect import model_path

    options = {name: getattr(choice, name) for name in REMOTE}
    return RemoteOptions(**{**options, "tokenizer": choice.tokenizer and model_path(choice.tokenizer)})


def _language_model(choice: RemoteOptions, name: str, *, offline: bool) -> str | LanguageModel:
    return choice.language_model(name, offline=offline)


def _world(
    experiment: Experiment,
    place: IndexLocation | None,
    searched: RemoteSearch | None,
    choice: RemoteOptions,
    *,
    offline: bool,
) -> ExperimentContext:
    """Made on a worker."""
    from zicl.lab.evaluate.context import ExperimentContext

    lm = choice.language_model(experiment.lm, offline=offline)
    index = None if place is None else place.open(searched, offline=offline)
    return ExperimentContext(experiment, lm=None if isinstance(lm, str) else lm, index=index, offline=offline)
