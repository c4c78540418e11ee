"""A small setup for studies: one task, a corpus of two domains, a tiny model."""

from __future__ import annotations

import json

import pytest

from tests.conftest import DOCUMENTS, make_index
from tests.lab.evaluate.conftest import write_task
from zicl.lab.study.context import StudyContext
from zicl.lab.study.registry import NAMES
from zicl.lab.study.settings import StudySettings

# Every option that makes a study long, small enough for seconds.
OPTIONS = {
    "retrieval": {"pools": [6, 12], "share": 0.5},
    "heads": {"count": 2, "sweep": [1], "swept": ["naive"], "draws": 2, "controls": ["naive"], "examples": 4},
    "coverage": {"domains": ["stage"]},
    "corpus-size": {"shares": [1, 0.8, 0.01]},
    "format": {"k": [1, 3], "inputs_only": [3]},
    "order": {"draws": 2},
}


@pytest.fixture
def domains(tmp_path):
    """The documents in two domains, each large enough without the other."""
    paths = {}
    for name, texts in (("stage", DOCUMENTS[:5]), ("street", DOCUMENTS[5:])):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        paths[name] = [path]
    return paths


@pytest.fixture
def two_domains(tmp_path, domains):
    return make_index(tmp_path / "two.zicl", domains=domains)


@pytest.fixture
def settings(tmp_path):
    return make_settings(write_task(tmp_path, test=4))


def make_settings(tasks, **changes):
    table = {"task_file": str(tasks), "seeds": [100, 13], "k": 3, "examples": 4, "batch": 4, "corpus": "given"}
    studies = {name: {"options": OPTIONS.get(name, {})} for name in NAMES}
    studies["heads"]["parts"] = {"random": {"inferences": ["channel"]}}
    return StudySettings({**table, **changes}, studies)


@pytest.fixture
def context(settings, lm, two_domains, tmp_path):
    return StudyContext(settings, tmp_path / "studies", lm=lm, index=two_domains, offline=True)
