"""zicl study on tiny models, as a user types it."""

import json

import pytest

from tests.lab.evaluate.conftest import write_task


@pytest.fixture
def given(corpus, lm_folder, tmp_path):
    tasks = write_task(tmp_path, test=4)
    config = tmp_path / "studies.toml"
    config.write_text(
        'task_file = "tasks.toml"\nseeds = [1]\nk = 3\ncorpus = "c.zicl"\n'
        "[study.format.options]\nk = [1, 3]\ninputs_only = [3]\n"
        "[study.heads.options]\ncount = 2\nsweep = []\ndraws = 1\ncontrols = []\nexamples = 3\n"
    )
    assert tasks.parent == corpus.parent
    return ["--config", config, "--lm", lm_folder, "--examples", 4, "--offline", "-o", tmp_path / "studies"]


def test_a_study_runs_resumes_and_says_what_it_found(run, given, tmp_path, monkeypatch):
    monkeypatch.setattr("zicl.lab.study.figures.save_figure", lambda _, path: path.touch() or path)
    code, out, err = run("study", "format", *given)
    assert code == 0, err
    assert out.startswith("How many demonstrations")
    assert "channel: over k = 3, Z-ICL minus inputs only is " in out
    # no-demos and inputs alone draw nothing; two methods for each of two k
    assert "24 rows computed" in err
    assert (tmp_path / "studies" / "format" / "study.json").is_file()
    code, out, err = run("study", "format", *given, "--json")
    assert code == 0, err
    (ran,) = json.loads(out)
    assert (ran["computed"], ran["kept"], ran["complete"]) == (0, 24, True)
    assert len(ran["summary"]["findings"]) == 2
    code, _, err = run("study", "format", *given, "--k", 2)
    assert code == 2
    assert "another configuration" in err


def test_a_dry_run_writes_nothing(run, given, tmp_path):
    code, out, err = run("study", "format", *given, "--dry-run", "--json")
    assert code == 0, err
    (cost,) = json.loads(out)
    assert cost["examples"] == 24
    assert cost["tokens"] > 0
    assert not (tmp_path / "studies").exists()
    code, out, err = run("study", "format", *given, "--dry-run", "--shard", "1/2")
    assert code == 0, err
    assert out.splitlines()[0] == "study\tpart\texamples\ttokens\tseconds"
    assert "12 examples" in err


def test_finding_heads_draws_their_map(run, given, tmp_path, monkeypatch):
    monkeypatch.setattr("zicl.lab.study.heads.draw_head_map", lambda _, path, top: path.with_suffix(".svg").touch())
    code, out, err = run("study", "heads", *given, "--find")
    assert code == 0, err
    assert len(out.splitlines()) == 3
    assert "3 prompts of Days" in err
    assert (tmp_path / "studies" / "heads" / "map.svg").is_file()
    assert json.loads((tmp_path / "studies" / "heads" / "heads.json").read_text())["prompts"] == 3


def test_a_model_without_reachable_heads_runs_the_other_studies(run, given, tmp_path, monkeypatch):
    """Of several studies the one of heads is left out, which is said; alone it is an error."""
    from zicl.lab.study.registry import STUDIES

    monkeypatch.setattr("zicl.lab.study.figures.save_figure", lambda _, path: path.touch() or path)
    monkeypatch.setattr("zicl.lab.study.registry.get_studies", lambda _: [STUDIES.get("heads"), STUDIES.get("format")])
    monkeypatch.setattr("zicl.lm.heads.FAMILIES", {})
    for more in ["--dry-run"], []:
        code, out, err = run("study", "reproduce", *given, *more, "--json")
        assert code == 0, err
        assert [each["study"] for each in json.loads(out)] == ["format"]
        assert "heads is left out: " in err
        assert "whose attention heads are not known" in err
    assert not (tmp_path / "studies" / "heads").exists()
    monkeypatch.setattr("zicl.lab.study.registry.get_studies", lambda name: [STUDIES.get(name)])
    code, _, err = run("study", "heads", *given)
    assert code == 1
    assert "whose attention heads are not known" in err


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[study.order.parts.varance]\nseeds = [1]\n", "did you mean 'variance'?"),
        ("[study.order.parts.variance]\nexmples = 3\n", "did you mean 'examples'?"),
    ],
)
def test_a_wrong_part_of_the_last_study_is_found_before_the_first_runs(run, given, table, message, monkeypatch):
    monkeypatch.setattr("zicl.lab.study.run.run_study", lambda *_, **__: pytest.fail("a study was run"))
    config = given[1]
    config.write_text(config.read_text() + table)
    code, _, err = run("study", "reproduce", *given)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["copy"], "did you mean 'copying'?"),
        (["labels", "--find"], "--find is for zicl study heads"),
        (["copying", "--tasks", "SST3"], "unknown task 'SST3'"),
        (["labels", "--seeds", "x"], "expected whole numbers"),
        (["labels", "--config", "nowhere.toml"], "there is no file nowhere.toml"),
        (["heads", "--find", "--dry-run"], "--find goes with neither"),
        (["heads", "--find", "--shard", "1/2"], "--find goes with neither"),
        (["labels", "--tasks", "SST2"], "no corpus was named"),
        (["heads", "--tasks", "SST2"], "no corpus was named"),
        (["reproduce", "--tasks", "SST2"], "no corpus was named"),
        (["labels", "--shard", "3/2"], "expected I/N"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_loaded(run, arguments, message, monkeypatch):
    from zicl.lm import load

    monkeypatch.setattr(load, "load_lm", lambda *_, **__: pytest.fail("a model was loaded"))
    code, _, err = run("study", *arguments)
    assert code == 2
    assert message in err
