"""Where things are, from the root: workers are started elsewhere, in other folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zicl._util.catalog import catalog
from zicl.lab.evaluate.experiment import Experiment
from zicl.retrieve.index import Index
from zicl.retrieve.search import Elsewhere


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
class IndexPlace:
    """Where an index is, and its encoder if that is a folder."""

    path: str
    encoder: str | None = None

    @classmethod
    def of(cls, index: Index) -> IndexPlace:
        """The place of an index that is open here."""
        name = index.manifest["encoder"]["name"]
        return cls(_absolute(str(index.corpus.path)), model_path(name) if model_path(name) != name else None)

    def open(self, searched: Elsewhere | None = None, *, offline: bool = False) -> Index:
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
