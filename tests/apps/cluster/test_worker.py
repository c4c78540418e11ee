"""What a worker checks and needs: versions, and absolute paths."""

from pathlib import Path

import pytest

from zicl.apps.cluster.worker import absolute_paths, check_versions, local_versions, model_path
from zicl.exceptions import ClusterError
from zicl.lab.evaluate.experiment import Experiment


def test_other_versions_are_named():
    check_versions(local_versions())
    with pytest.raises(ClusterError, match=r"torch 1\.0"):
        check_versions({**local_versions(), "torch": "1.0"})


def test_all_paths_of_an_experiment_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").mkdir()
    corpus = {"path": "raw.zicl", "domains": {"a": "a.txt", "b": "hf:org/set"}}
    experiment = Experiment(
        tasks=["SST2", "CR"],
        lm="weights",
        corpus=corpus,
        data={"SST2": "x/test.jsonl", "CR": "hub"},
        demonstrations="published",
        encoder="weights",
    )
    moved = absolute_paths(experiment)
    assert moved.lm == moved.encoder == str(tmp_path / "weights")
    assert moved.demonstrations == str(tmp_path / "published")
    assert moved.data == {"SST2": str(tmp_path / "x/test.jsonl"), "CR": "hub"}
    assert moved.corpus.path == str(tmp_path / "raw.zicl")
    paths = {name: domain.paths for name, domain in moved.corpus.domains.items()}
    assert paths == {"a": (str(tmp_path / "a.txt"),), "b": ("hf:org/set",)}
    assert absolute_paths(moved) == moved


def test_names_of_models_stay_and_paths_of_weights_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.gguf").touch()
    assert model_path("gguf:m.gguf") == f"gguf:{tmp_path / 'm.gguf'}"
    assert model_path("smollm2-135m") == "smollm2-135m"
    assert model_path("http://127.0.0.1:8000/v1#m") == "http://127.0.0.1:8000/v1#m"
