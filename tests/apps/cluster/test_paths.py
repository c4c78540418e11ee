from pathlib import Path

from zicl.apps.cluster.connect import absolute, model_path
from zicl.lab.evaluate.experiment import Experiment


def test_all_paths_of_an_experiment_count_from_the_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").mkdir()
    corpus = {"path": "raw.zicl", "domains": {"a": "a.txt", "b": "hf:org/set"}}
    experiment = Experiment(
        tasks=["SST2", "CR"], lm="weights", corpus=corpus, data={"SST2": "x/test.jsonl", "CR": "hub"}
    )
    placed = absolute(experiment)
    assert placed.lm == str(tmp_path / "weights")
    assert placed.data == {"SST2": str(tmp_path / "x/test.jsonl"), "CR": "hub"}
    assert placed.corpus.path == str(tmp_path / "raw.zicl")
    assert placed.corpus.domains == {"a": str(tmp_path / "a.txt"), "b": "hf:org/set"}
    assert absolute(placed) == placed


def test_names_of_models_stay_and_files_of_weights_get_their_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.gguf").touch()
    assert model_path("gguf:m.gguf") == f"gguf:{tmp_path / 'm.gguf'}"
    assert model_path("smollm2-135m") == "smollm2-135m"
    assert model_path("http://127.0.0.1:8000/v1#m") == "http://127.0.0.1:8000/v1#m"
