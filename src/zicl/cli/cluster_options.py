"""The option ``--on`` of commands whose work a Ray cluster can do, and the workers it describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl._util.counts import counted
from zicl.cli.console import print_status
from zicl.cli.help import MODEL
from zicl.cli.model_options import RemoteOptions, parse_server
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.apps.cluster.connect import Cluster
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.apps.cluster.worker import IndexLocation
    from zicl.apps.distill.classifier import DistilledClassifier
    from zicl.classifier import FitCompute, ZICLClassifier
    from zicl.cli.options import ClassifierOptions
    from zicl.lab.evaluate.context import ExperimentContext
    from zicl.lab.evaluate.experiment import Experiment
    from zicl.lab.evaluate.run import Compute
    from zicl.lm.base import LanguageModel
    from zicl.retrieve.index import Index
    from zicl.retrieve.search import RemoteSearch

OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="Spread the work over a Ray cluster: ray, or its address; then workers=N, threads=N (per worker) and "
        "searchers=N (workers that search the index, a part each), e.g. ray,workers=4.",
        rich_help_panel=MODEL,
    ),
]


@dataclass(frozen=True)
class ClusterChoice:
    """What ``--on`` says."""

    address: str
    workers: int | None = None
    threads: int | None = None
    searchers: int = 0


def parse_cluster(text: str | None) -> ClusterChoice | None:
    """Return what ``--on`` says, checked.

    >>> parse_cluster("ray,workers=4,threads=2")
    ClusterChoice(address='ray', workers=4, threads=2, searchers=0)
    """
    if text is None:
        return None
    address, *entries = text.split(",")
    choice = ClusterChoice(address)
    for entry in entries:
        key, _, value = entry.partition("=")
        if key not in ("workers", "threads", "searchers") or not value.isdecimal() or not int(value):
            raise UsageError(
                f"--on {text}: {entry!r} was not expected", hint="--on ray,workers=4,threads=2,searchers=2, for example"
            )
        changes: dict[str, Any] = {key: int(value)}
        choice = replace(choice, **changes)
    return choice


@contextmanager
def connected(choice: ClusterChoice) -> Iterator[Cluster]:
    """Connect to the cluster."""
    from zicl.apps.cluster.connect import connect

    with connect(choice.address, workers=choice.workers, threads=choice.threads) as cluster:
        workers = counted(cluster.workers, "worker")
        print_status(f"{workers} with {counted(cluster.threads, 'thread')} each on {choice.address}")
        yield cluster


def check_cost(options: RemoteOptions) -> None:
    """Refuse limits of cost: workers that do not know of each other cannot keep one account."""
    for key in parse_server(options.server):
        if key in ("max_cost", "price_in", "price_out"):
            raise UsageError(
                f"--server {key}: several workers cannot keep one account of what is spent",
                hint="leave out --on: one process can send a server many requests in parallel, --server requests=N",
            )


@contextmanager
def evaluation_workers(
    options: RemoteOptions, context: ExperimentContext, cluster: Cluster, searchers: int, report: ProgressReport
) -> Iterator[Compute]:
    """Start workers for an evaluation."""
    from zicl.apps.cluster.evaluate import ClusterCompute, EvaluationWorker
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.apps.cluster.ray_workers import RayWorkers
    from zicl.apps.cluster.worker import IndexLocation, WorkerSetup, absolute_paths

    # Opened here first: a corpus that is only a recipe is built now, where its progress is seen.
    index = context.index
    location = None if index is None else IndexLocation.of(index)
    search = _start_searchers(index, searchers)
    make = partial(
        _make_context,
        absolute_paths(context.experiment),
        location,
        search,
        _server_options(options),
        offline=context.offline,
    )
    arguments = make, WorkerSetup(cluster.threads, context.offline)
    report("starting the workers", 0, None)
    with WorkerPool(RayWorkers(EvaluationWorker, arguments, cluster, print_status), cluster.workers) as pool:
        yield ClusterCompute(pool, context.hashes)


@contextmanager
def classification_workers(
    options: ClassifierOptions, cluster: Cluster, classifier: ZICLClassifier | DistilledClassifier, searchers: int = 0
) -> Iterator[WorkerPool]:
    """Start workers that label texts."""
    from zicl.apps.cluster.classify import ClassifyWorker, PortableClassifier
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.apps.cluster.ray_workers import RayWorkers
    from zicl.apps.cluster.worker import WorkerSetup
    from zicl.lm.remote.settings import is_remote
    from zicl.retrieve.index import Index

    packed = PortableClassifier.of(classifier, offline=options.offline)
    index = getattr(classifier, "index_", None)
    search = _start_searchers(index if isinstance(index, Index) else None, searchers)
    open_lm: Callable[[], Any] | None = None
    if packed.lm is not None and is_remote(packed.lm):
        open_lm = partial(_open_lm, _server_options(options), packed.lm, offline=packed.offline)
    arguments = packed, WorkerSetup(cluster.threads, packed.offline), open_lm, search
    with WorkerPool(RayWorkers(ClassifyWorker, arguments, cluster, print_status), cluster.workers) as pool:
        yield pool


def cluster_fit(options: ClassifierOptions, cluster: Cluster) -> FitCompute:
    """Return what does the slow steps of a fit on a cluster."""
    from zicl.apps.cluster.classify import ClusterFit

    return ClusterFit(partial(classification_workers, options, cluster), cluster.workers)


def _start_searchers(index: Index | None, count: int) -> RemoteSearch | None:
    if not count:
        return None
    if index is None:
        raise UsageError("--on …,searchers=N: no corpus is searched here", hint="leave it out")
    from zicl.apps.cluster.search import start_searchers

    return start_searchers(index, count)


def _server_options(options: RemoteOptions) -> RemoteOptions:
    """Return the options for a server alone, for a worker that opens its own connections."""
    from zicl.apps.cluster.worker import model_path

    given = parse_server(options.server)
    if "tokenizer" in given:
        given["tokenizer"] = model_path(given["tokenizer"])
    return RemoteOptions(options.allow_remote_text, [f"{key}={value}" for key, value in given.items()])


def _open_lm(options: RemoteOptions, name: str, *, offline: bool) -> str | LanguageModel:
    return options.language_model(name, offline=offline)


def _make_context(
    experiment: Experiment,
    location: IndexLocation | None,
    search: RemoteSearch | None,
    options: RemoteOptions,
    *,
    offline: bool,
) -> ExperimentContext:
    """Load an experiment's context on a worker."""
    from zicl.lab.evaluate.context import ExperimentContext

    lm = options.language_model(experiment.lm, offline=offline)
    index = None if location is None else location.open(search, offline=offline)
    return ExperimentContext(experiment, lm=None if isinstance(lm, str) else lm, index=index, offline=offline)
