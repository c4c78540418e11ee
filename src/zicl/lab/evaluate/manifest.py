"""The manifest of an experiment: everything its rows depend on, without any path or text."""

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

# Keys of an experiment that say where something is. What is there has a hash in the fingerprint, a task or a cell.
_PATHS = {"data", "train", "task_file", "corpus", "encoder", "demonstrations"}
_LIBRARIES = ("torch", "transformers", "tokenizers", "sentence-transformers", "faiss-cpu", "numpy", "scikit-learn")


def manifest(context: ExperimentContext) -> dict[str, Any]:
    """Return the fingerprint, the experiment, and the configuration of every task and cell."""
    return {
        "format": FORMAT,
        "zicl": __version__,
        "fingerprint": fingerprint(context),
        **configuration(context),
    }


def configuration(context: ExperimentContext) -> dict[str, Any]:
    """Return the part of a manifest for which no model has to be loaded."""
    return {
        "experiment": {
            **context.experiment.model_dump(mode="json", exclude=_PATHS),
            "lm": _without_folder(context.experiment.lm),
        },
        "tasks": {name: _task(context, task) for name, task in context.tasks.items()},
        "cells": {cell.key: _cell(context, cell) for cell in cells(context.experiment)},
    }


def fingerprint(context: ExperimentContext) -> dict[str, Any]:
    """Return model, corpus and versions. Rows with different fingerprints are never mixed."""
    lm, scoring = (context.lm if context.needs("needs_lm") else None), context.experiment.scoring
    return {
        "lm": None
        if lm is None
        else {"name": _without_folder(lm.name), "identity": lm.identity, "revision": lm.revision},
        "corpus": None if context.index is None else _corpus(context.index),
        "encoder": context.encoder.identity if context.embeds else None,
        "dtype": scoring.dtype,
        "device": None if lm is None else str(getattr(getattr(lm, "forward", None), "device", scoring.device)),
        "versions": library_versions(),
    }


def library_versions() -> dict[str, str]:
    """Return the versions that scores may depend on."""
    return {"zicl": __version__, **versions(_LIBRARIES)}


def _corpus(index: Index) -> dict[str, Any]:
    return {
        "identity": index.identity,
        "sentences": index.corpus.sentences,
        "domains": index.corpus.domains,
        "encoder": _without_folder(index.manifest["encoder"]["name"]),
        "encoder_identity": index.manifest["encoder"]["identity"],
    }


def _task(context: ExperimentContext, task: Task) -> dict[str, Any]:
    training, experiment = context.training.get(task.name), context.experiment
    from_hub = task.hub is not None and task.test is None and task.name not in experiment.data
    note = task.hub.note if from_hub and task.hub and not task.note else task.note
    return {
        "labels": list(task.labels.names),
        "covered": experiment.covered.get(task.name, task.covered),
        "origin": task.origin,
        "note": experiment.notes.get(task.name, note),
        "examples": len(context.examples[task.name]),
        "hash": context.hashes[task.name],
        "sample_seed": task.sample_seed,
        # Published examples are of a seed, and so of a cell.
        "train_hash": data_hash(training) if training and context.released is None else None,
        # Labels are numbers of options, which differ from example to example.
        "counted": task.labels.counted,
    }


def _cell(context: ExperimentContext, cell: PlanCell) -> dict[str, Any]:
    method, task = context.methods[cell.method], context.tasks[cell.task]
    template = task.template if cell.template == "task" else cell.template
    return {
        "method": {**method.model_dump(mode="json"), "labelled": method.labelled, "control": method.control},
        "words": task.labels.to_toml(),
        # A list, as read back from JSON: the next run compares them.
        "template": template if isinstance(template, str) else list(template),
        "prompt": context.experiment.prompt.model_dump(mode="json"),
        "reduce": context.experiment.scoring.reduce,
        "k": context.experiment.k,
        "batch": context.experiment.batch,
        # Clusters and the pile are fitted on these examples, or paraphrases of them are in the corpus: the rows depend
        # on all of them.
        "clustered": data_hash(context.examples[cell.task])
        if method.retrieval.share > 1 or method.pile.method != "none" or method.planted
        else None,
        "examples": len(context.examples[cell.task]),
        # The file that the demonstrations are from, if there is one.
        "given": context.source_identity(cell.task, method, cell.seed or 0),
    }


def _without_folder(name: str) -> str:
    """Return a model's name; for one in a folder or a file only the last part of the path.

    >>> _without_folder("gguf:/home/me/model.gguf"), _without_folder("hf:org/model"), _without_folder("smollm2-135m")
    ('gguf:model.gguf', 'hf:org/model', 'smollm2-135m')
    """
    if is_remote(name):
        return str(parse_address(name).shown)
    prefix, colon, rest = name.rpartition(":") if name.startswith("gguf:") else ("", "", name)
    local = prefix or Path(rest).expanduser().exists()
    return f"{prefix}{colon}{Path(rest).name}" if local else name
