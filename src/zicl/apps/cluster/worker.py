"""What a worker on another machine needs to compute the same results: equal versions and threads, absolute paths."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zicl._util.catalog import catalog
from zicl._util.process import __version__, go_offline, use_threads, versions
from zicl.exceptions import ClusterError
from zicl.lab.evaluate.experiment import Experiment
from zicl.retrieve.encoder import load_encoder
from zicl.retrieve.index import Index
from zicl.retrieve.search import RemoteSearch

_LIBRARIES = (
    *("torch", "transformers", "tokenizers", "sentence-transformers", "onnxruntime"),
    *("faiss-cpu", "numpy", "pyarrow", "sentencex", "nltk"),
)


def local_versions() -> dict[str, str]:
    """Return the versions in this process that results depend on."""
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "zicl": __version__,
        **versions(_LIBRARIES),
    }


def check_versions(expected: Mapping[str, str]) -> None:
    """Check that this machine has the versions of the one that runs the command."""
    here = local_versions()
    different = [f"{name} {value} and {here.get(name)}" for name, value in expected.items() if here.get(name) != value]
    if different:
        raise ClusterError(
            f"the machines of the cluster have different versions: {', '.join(different)}",
            hint="install the same versions on all of them",
        )


@dataclass(frozen=True)
class WorkerSetup:
    """Threads, network access and versions of a worker: made by the command, applied in the worker's process."""

    threads: int
    offline: bool = False
    versions: Mapping[str, str] = field(default_factory=local_versions)

    def apply(self) -> None:
        """Set up this process; results are equal, byte for byte, only with equal numbers of threads."""
        if self.offline:
            go_offline()
        check_versions(self.versions)
        use_threads(self.threads)


@dataclass(frozen=True)
class IndexLocation:
    """The absolute path of an index, and of its encoder if that is a folder."""

    path: str
    encoder: str | None = None

    @classmethod
    def of(cls, index: Index) -> IndexLocation:
        """Return the location of an open index."""
        name = index.manifest["encoder"]["name"]
        return cls(_absolute(str(index.corpus.path)), model_path(name) if model_path(name) != name else None)

    def open(self, remote: RemoteSearch | None = None, *, offline: bool = False) -> Index:
        """Open the index on another machine; ``remote`` searches its vectors, if given."""
        encoder = None if self.encoder is None else load_encoder(self.encoder, offline=offline)
        index = Index.open(self.path, encoder=encoder, offline=offline)
        return index if remote is None else index.with_remote_search(remote)


def model_path(name: str) -> str:
    """Return a model's name, or the absolute path if it is a folder or a file. The catalog comes first, as in loading.

    >>> model_path("smollm2-135m"), model_path("hf:org/model")
    ('smollm2-135m', 'hf:org/model')
    """
    if name in catalog():
        return name
    prefix = "gguf:" if name.startswith("gguf:") else ""
    path = Path(name.removeprefix(prefix)).expanduser()
    return f"{prefix}{path.absolute()}" if path.exists() else name


def absolute_paths(experiment: Experiment) -> Experiment:
    """Return the experiment with all its paths made absolute: workers start in other folders."""
    changes: dict[str, Any] = {
        name: {task: path if path == "hub" else _absolute(path) for task, path in getattr(experiment, name).items()}
        for name in ("data", "train")
    }
    changes["lm"] = model_path(experiment.lm)
    for name in ("task_file", "demonstrations"):
        if (path := getattr(experiment, name)) is not None:
            changes[name] = _absolute(path)
    if experiment.encoder is not None:
        changes["encoder"] = model_path(experiment.encoder)
    if (corpus := experiment.corpus) is not None:
        location = {"path": _absolute(corpus.path), "encoder": model_path(corpus.encoder)}
        changes["corpus"] = corpus.located(_absolute).model_copy(update=location)
    return experiment.model_copy(update=changes)


def _absolute(path: str) -> str:
    # Links are not resolved: a model is named after its folder.
    return str(Path(path).expanduser().absolute())
