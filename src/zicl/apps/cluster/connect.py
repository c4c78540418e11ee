"""What went wrong on a cluster, in words of this project."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zicl._util.catalog import catalog
from zicl._util.process import __version__, go_offline, use_threads, versions
from zicl.exceptions import ClusterError, ConfigError, ZICLError
from zicl.lab.evaluate.experiment import Experiment
from zicl.retrieve.index import Index
from zicl.retrieve.search import RemoteSearch


def cluster_error(error: BaseException) -> BaseException:
    """The error that our code raised on a worker, which Ray wraps in its own; else one that says what Ray said."""
    inner: BaseException | None = error
    while inner is not None:
        cause = getattr(inner, "cause", None)
        if isinstance(cause, BaseException):
            # Before its class is looked at: Ray's wrapper is of our class too, and its message a whole traceback.
            inner = cause
        elif isinstance(inner, ZICLError):
            return inner
        else:
            inner = inner.__cause__
    return ClusterError(f"the cluster failed: {short_message(error)}", hint="see the cluster's own logs")


def short_message(error: BaseException) -> str:
    r"""An error's message on one line, its end rather than its beginning: Ray tells the reason last.

    >>> short_message(ValueError("a\n b")), short_message(ValueError())
    ('a b', 'ValueError')
    """
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 400 else f"…{words[-400:]}"


# -- Machines of a cluster have to compute with the same versions: the same answer, always.


_LIBRARIES = (
    *("torch", "transformers", "tokenizers", "sentence-transformers"),
    *("faiss-cpu", "numpy", "pyarrow", "sentencex", "nltk"),
)


def decisive() -> dict[str, str]:
    """The versions that decide results in this process."""
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "zicl": __version__,
        **versions(_LIBRARIES),
    }


def check_versions(expected: Mapping[str, str]) -> None:
    """An error that names what differs between the machine that gave the command and this one."""
    here = decisive()
    other = [f"{name} {value} and {here.get(name)}" for name, value in expected.items() if here.get(name) != value]
    if other:
        raise ClusterError(
            f"the machines of the cluster have other versions: {', '.join(other)}",
            hint="install the same on all of them",
        )


# -- A Ray cluster: connecting to it, and how many workers of how many threads it holds.


# As an address: the one that RAY_ADDRESS names; else a cluster of this machine alone, which ends with the command.
ANY = "ray"
_REACHED_WITHIN = 10.0


@dataclass(frozen=True)
class Cluster:
    """How work is spread: so many workers, each with so many threads, and a GPU where there are any."""

    workers: int
    threads: int
    gpus: int = 0


@contextmanager
def connect(address: str, *, workers: int | None = None, threads: int | None = None) -> Iterator[Cluster]:
    """A cluster while it is used; its workers end with the command."""
    for name, value in (("--workers", workers), ("--threads", threads)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} {value}: expected at least 1")
    named = os.environ.get("RAY_ADDRESS") if address == ANY else address
    ray = _ray(alone=named is None)
    try:
        if named is not None:
            _reach(named)
        ray.init(
            address=named or "local",
            namespace="zicl",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:
        # Whatever it is: Ray raises exceptions of no class of its own where a node does not start in time.
        raise ClusterError(
            f"the Ray cluster {named or address!r} was not reached: {short_message(error)}",
            hint="start one with 'ray start --head --disable-usage-stats' and give its address, or use --on ray",
        ) from error
    try:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        yield worker_count(nodes, workers=workers, threads=threads)
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Knock at a cluster's door: Ray itself would wait for minutes where nobody is."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_WITHIN):
            pass


def _ray(*, alone: bool) -> Any:
    # Read by Ray when it is imported or starts a cluster: it must not report to anyone.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray would otherwise hide the GPUs from workers that asked for none, and warn of it.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if alone:
        # On Windows and macOS Ray keeps to loopback unless told otherwise; so does the one that we start, everywhere.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ClusterError("Ray is not installed", hint="pip install 'zicl[ray]', on every machine") from error
    return ray


def worker_count(
    nodes: Sequence[dict[str, float]], *, workers: int | None = None, threads: int | None = None
) -> Cluster:
    """Workers that fit: one a GPU where there are any, else one a machine with all its cores, unless told otherwise.

    >>> worker_count([{"CPU": 8.0}, {"CPU": 4.0}])
    Cluster(workers=3, threads=4, gpus=0)
    >>> worker_count([{"CPU": 16.0, "GPU": 4.0}, {"CPU": 64.0}])
    Cluster(workers=4, threads=4, gpus=1)
    """
    with_cards = [node for node in nodes if node.get("GPU", 0) >= 1]
    sizes = [(int(node.get("CPU", 0)), int(node.get("GPU", 0))) for node in with_cards or nodes]
    sizes = [(cores, cards) for cores, cards in sizes if cores]
    if not sizes:
        raise ClusterError("the cluster has no CPU to work on", hint="see 'ray status'")
    chosen = threads or max(1, min(cores // max(1, cards) for cores, cards in sizes))
    fitting = sum(min(cores // chosen, cards) if with_cards else cores // chosen for cores, cards in sizes)
    wanted = workers or max(1, fitting)
    if wanted > fitting:
        raise ConfigError(
            f"{wanted} workers with {chosen} threads{' and a GPU' if with_cards else ''} each do not fit the cluster: "
            f"it has room for {fitting}",
            hint="ask for fewer with --workers, for smaller ones with --threads, or add machines",
        )
    return Cluster(wanted, chosen, gpus=1 if with_cards else 0)


# -- What every worker does before it begins.


@dataclass(frozen=True)
class WorkerSetup:
    """Threads, network and versions of a worker: made where the command was given, kept where it computes."""

    threads: int
    offline: bool = False
    versions: Mapping[str, str] = field(default_factory=decisive)

    def keep(self) -> None:
        """Set this process up; results are the same, byte for byte, only at equal numbers of threads."""
        if self.offline:
            go_offline()
        check_versions(self.versions)
        use_threads(self.threads)


# -- Where things are, from the root: workers are started elsewhere, in other folders.


def model_path(name: str) -> str:
    """A model's name; of one in a folder or a file, its whole path. The catalog comes first, as in loading.

    >>> model_path("smollm2-135m"), model_path("hf:org/model")
    ('smollm2-135m', 'hf:org/model')
    """
    if name in catalog():
        return name
    prefix = "gguf:" if name.startswith("gguf:") else ""
    path = Path(name.removeprefix(prefix)).expanduser()
    return f"{prefix}{path.absolute()}" if path.exists() else name


@dataclass(frozen=True)
class IndexLocation:
    """Where an index is, and its encoder if that is a folder."""

    path: str
    encoder: str | None = None

    @classmethod
    def of(cls, index: Index) -> IndexLocation:
        """The place of an index that is open here."""
        name = index.manifest["encoder"]["name"]
        return cls(_absolute(str(index.corpus.path)), model_path(name) if model_path(name) != name else None)

    def open(self, searched: RemoteSearch | None = None, *, offline: bool = False) -> Index:
        """The same index on another machine, perhaps searched by others."""
        from zicl.retrieve.encoder import load_encoder

        encoder = None if self.encoder is None else load_encoder(self.encoder, offline=offline)
        index = Index.open(self.path, encoder=encoder, offline=offline)
        return index if searched is None else index.searched_by(searched)


def absolute(experiment: Experiment) -> Experiment:
    """The experiment with all its paths from the root."""
    changes: dict[str, Any] = {
        name: {task: path if path == "hub" else _absolute(path) for task, path in getattr(experiment, name).items()}
        for name in ("data", "train")
    }
    changes["lm"] = model_path(experiment.lm)
    if experiment.task_file is not None:
        changes["task_file"] = _absolute(experiment.task_file)
    if (corpus := experiment.corpus) is not None:
        domains = {name: path if path.startswith("hf:") else _absolute(path) for name, path in corpus.domains.items()}
        place = {"path": _absolute(corpus.path), "domains": domains, "encoder": model_path(corpus.encoder)}
        changes["corpus"] = corpus.model_copy(update=place)
    return experiment.model_copy(update=changes)


def _absolute(path: str) -> str:
    # Links are not followed: the name of a model is that of its folder.
    return str(Path(path).expanduser().absolute())
