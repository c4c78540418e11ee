"""Paths from the root: workers are started elsewhere, in other folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zicl.evaluate.experiment import Experiment


def model_path(name: str) -> str:
    """A model's name; of one in a folder or a file, its whole path.

    >>> model_path("smollm2-135m"), model_path("hf:org/model")
    ('smollm2-135m', 'hf:org/model')
    """
    prefix = "gguf:" if name.startswith("gguf:") else ""
    path = Path(name.removeprefix(prefix)).expanduser()
    return f"{prefix}{path.resolve()}" if path.exists() else name


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
        changes["corpus"] = corpus.model_copy(update={"path": _absolute(corpus.path), "domains": domains})
    return experiment.model_copy(update=changes)


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().resolve())
