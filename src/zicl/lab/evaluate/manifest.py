"""What rows depend on, written beside them: fingerprint, experiment, tasks and cells. No path and no text in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zicl._util.process import __version__, versions
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.examples import data_hash
from zicl.lab.evaluate.plan import PlanCell, cells
from zicl.lab.evaluate.store import FORMAT
from zicl.lab.evaluate.tasks import Task
from zicl.lm.remote.settings import is_remote, parse_address
from zicl.retrieve.index import Index

_LIBRARIES = ("torch", "transformers", "tokenizers", "sentence-transformers", "faiss-cpu", "numpy", "scikit-learn")


def manifest(world: ExperimentContext) -> dict[str, Any]:
    """Everything but the rows."""
    return {
        "format": FORMAT,
        "zicl": __version__,
        "fingerprint": fingerprint(world),
        "experiment": {
            **world.experiment.model_dump(mode="json", exclude={"data", "train", "task_file", "corpus"}),
            "lm": _without_folder(world.experiment.lm),
        },
        "tasks": {name: _task(world, task) for name, task in world.tasks.items()},
        "cells": {cell.key: _cell(world, cell) for cell in cells(world.experiment)},
    }


def fingerprint(world: ExperimentContext) -> dict[str, Any]:
    """Model, corpus and versions: rows of two fingerprints are never mixed."""
    lm, scoring = (world.lm if world.needs("needs_lm") else None), world.experiment.scoring
    return {
        "lm": None
        if lm is None
        else {"name": _without_folder(lm.name), "identity": lm.identity, "revision": lm.revision},
        "corpus": None if world.index is None else _corpus(world.index),
        "encoder": world.encoder.identity if world.needs("embeds") else None,
        "dtype": scoring.dtype,
        "device": None if lm is None else str(getattr(getattr(lm, "forward", None), "device", scoring.device)),
        "versions": {"zicl": __version__, **versions(_LIBRARIES)},
    }


def _corpus(index: Index) -> dict[str, Any]:
    return {
        "identity": index.identity,
        "sentences": index.corpus.sentences,
        "domains": index.corpus.domains,
        "encoder": _without_folder(index.manifest["encoder"]["name"]),
        "encoder_identity": index.manifest["encoder"]["identity"],
    }


def _task(world: ExperimentContext, task: Task) -> dict[str, Any]:
    training, experiment = world.training.get(task.name), world.experiment
    from_hub = task.hub is not None and task.test is None and task.name not in experiment.data
    note = task.hub.note if from_hub and task.hub and not task.note else task.note
    return {
        "labels": list(task.labels.names),
        "covered": experiment.covered.get(task.name, task.covered),
        "origin": task.origin,
        "note": experiment.notes.get(task.name, note),
        "examples": len(world.examples[task.name]),
        "hash": world.hashes[task.name],
        "sample_seed": task.sample_seed,
        "train_hash": data_hash(training) if training else None,
        # Its labels are numbers of options that are other words for every example.
        **({"counted": True} if task.labels.counted else {}),
    }


def _cell(world: ExperimentContext, cell: PlanCell) -> dict[str, Any]:
    method, task = world.methods[cell.method], world.tasks[cell.task]
    template = task.template if cell.template == "task" else cell.template
    return {
        "method": {**method.model_dump(mode="json"), "labelled": method.labelled, "control": method.control},
        "words": task.labels.to_toml(),
        # As JSON gives it back, which the next run compares it with.
        "template": template if isinstance(template, str) else list(template),
        "prompt": world.experiment.prompt.model_dump(mode="json"),
        "reduce": world.experiment.scoring.reduce,
        "k": world.experiment.k,
        "batch": world.experiment.batch,
        # Clusters are fitted on these examples, and so the rows depend on which they are.
        "clustered": data_hash(world.examples[cell.task]) if method.retrieval.share > 1 else None,
        "examples": len(world.examples[cell.task]),
    }


def _without_folder(name: str) -> str:
    """A model's name; of one in a folder or a file the last part, for a path says nothing to others.

    >>> _without_folder("gguf:/home/me/model.gguf"), _without_folder("hf:org/model"), _without_folder("smollm2-135m")
    ('gguf:model.gguf', 'hf:org/model', 'smollm2-135m')
    """
    if is_remote(name):
        return str(parse_address(name).shown)
    prefix, colon, rest = name.rpartition(":") if name.startswith("gguf:") else ("", "", name)
    local = prefix or Path(rest).expanduser().exists()
    return f"{prefix}{colon}{Path(rest).name}" if local else name
