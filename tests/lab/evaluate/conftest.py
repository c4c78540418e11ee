"""A small task in words of this project, and an experiment over it with every method."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.experiment import Experiment
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS

_THINGS = ("soup", "train", "lamp", "film", "song", "bread", "phone", "guide")
_WORDS = {"terrible": ("cold", "late", "dull", "broken"), "great": ("warm", "bright", "bold", "lovely")}


def examples(count: int, start: int = 0) -> list[dict[str, str]]:
    rows = []
    for number in range(start, start + count):
        label = ("terrible", "great")[number % 2]
        thing, word = _THINGS[number % len(_THINGS)], _WORDS[label][number // 2 % 4]
        rows.append({"id": f"e{number}", "text": f"The {thing} of day {number} was {word}.", "label": label})
    return rows


def write_task(folder: Path, test: int = 10, train: int = 24) -> Path:
    for name, rows in (("test", examples(test)), ("train", examples(train, start=100))):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "tasks.toml"
    path.write_text(
        '[Days]\ntest = "test.jsonl"\ntrain = "train.jsonl"\ntemplate = "review"\n'
        'labels = [{name = "terrible", synonyms = ["bad"], description = "It was terrible."},\n'
        '          {name = "great", synonyms = ["good"], description = "It was great."}]\n'
    )
    return path


@pytest.fixture
def tasks(tmp_path) -> Path:
    return write_task(tmp_path)


@pytest.fixture
def experiment(tasks) -> Experiment:
    return make_experiment(tasks)


def make_experiment(tasks: Path, **changes) -> Experiment:
    # What is compared in z-icl+ is not a log-likelihood: it has a test of its own.
    everything = [name for name in EXPERIMENT_METHODS if name not in ("instruction", "z-icl+")]
    settings = {
        "tasks": ["Days"],
        "methods": everything,
        "seeds": [100, 13],
        "k": 4,
        "batch": 4,
        "corpus": "given",
        "task_file": str(tasks),
    }
    return Experiment(**{**settings, **changes})


@pytest.fixture
def context(experiment, lm, index) -> ExperimentContext:
    return ExperimentContext(experiment, lm=lm, index=index)
