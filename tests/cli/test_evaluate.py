"""zicl evaluate, verify, merge and report on tiny models, as a user types them."""

import json

import pytest

from tests.lab.evaluate.conftest import write_task
from zicl.lab.evaluate.store import is_results


@pytest.fixture
def given(corpus, lm_folder, tmp_path):
    tasks = write_task(tmp_path)
    return ["--task-file", tasks, "--tasks", "Days", "--corpus", corpus, "--lm", lm_folder, "--k", 3, "--offline"]


def test_evaluate_verify_and_report(run, given, tmp_path):
    chosen = [*given, "--methods", "majority,no-demos,z-icl,icl-gold,cosine-words", "--seeds", "100,13"]
    code, out, err = run("evaluate", *chosen, "-o", tmp_path / "r", "--json")
    assert code == 0, err
    # majority and cosine once; no-demos once an inference; two methods with two seeds and two inferences
    assert json.loads(out)["computed"] == 10 * (1 + 1 + 2 + 2 * 2 * 2)
    code, out, _ = run("evaluate", *chosen, "-o", tmp_path / "r", "--json")
    assert json.loads(out)["computed"] == 0
    code, out, err = run("verify", *chosen, "-r", tmp_path / "r", "--sample", 5)
    assert code == 0, err
    assert "the same: 5 of 5 rows" in err
    code, out, err = run("report", tmp_path / "r")
    assert code == 0, err
    assert "Z-ICL" in out
    assert "Coverage unknown" in out
    # What the note below the table says: set it, run again, and nothing is computed anew.
    tasks = tmp_path / "tasks.toml"
    tasks.write_text(tasks.read_text().replace("[Days]\n", "[Days]\ncovered = true\n"))
    code, out, err = run("evaluate", *chosen, "-o", tmp_path / "r", "--json")
    assert json.loads(out)["computed"] == 0, err
    out = run("report", tmp_path / "r")[1]
    assert "Covered by the corpus" in out
    assert "Coverage unknown" not in out


def test_a_corpus_is_built_from_its_recipe_once(run, jsonl, encoder_folder, lm_folder, tmp_path):
    write_task(tmp_path)
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(
        'task_file = "tasks.toml"\nmethods = ["z-icl"]\ninferences = ["channel"]\nseeds = [1]\nexamples = 4\nk = 3\n'
        f'lm = "{lm_folder}"\n[corpus]\npath = "built.zicl"\nencoder = "{encoder_folder}"\n'
        f'domains = {{ things = "{jsonl.name}" }}\n'
    )
    code, out, err = run("evaluate", experiment, "-o", tmp_path / "first", "--offline", "--json")
    assert code == 0, err
    assert json.loads(out)["computed"] == 4
    assert "embedding" in err
    built = {path: path.stat().st_mtime_ns for path in (tmp_path / "built.zicl").rglob("*") if path.is_file()}
    assert json.loads(run("corpus", "info", tmp_path / "built.zicl", "--json")[1])["corpus"]["sentences"] == 30
    code, out, err = run("evaluate", experiment, "-o", tmp_path / "second", "--offline", "--json")
    assert code == 0, err
    assert json.loads(out)["computed"] == 4
    assert "embedding" not in err
    assert built == {path: path.stat().st_mtime_ns for path in (tmp_path / "built.zicl").rglob("*") if path.is_file()}
    recipe = experiment.read_text()
    for line, message in (("seed = 3", "seed 0, and its recipe says 3"), ('encoder = "other"', "says 'other'")):
        changed = recipe.replace(f'encoder = "{encoder_folder}"\n', "") if "encoder" in line else recipe
        experiment.write_text(changed.replace("[corpus]\n", f"[corpus]\n{line}\n"))
        code, _, err = run("evaluate", experiment, "-o", tmp_path / "third", "--offline")
        assert code == 2
        assert message in err
    experiment.write_text(recipe.replace(f'"{jsonl.name}"', f'{{ paths = ["{jsonl.name}"], text_column = "text" }}'))
    code, _, err = run("evaluate", experiment, "-o", tmp_path / "third", "--offline")
    assert code == 2
    assert "text_columns {}, and its recipe says {'things': 'text'}" in err


def test_the_encoder_of_a_recipe_is_replaced(run, jsonl, encoder_folder, lm_folder, tmp_path):
    """``--encoder`` is the one with which the corpus is built, and which it is then opened with."""
    write_task(tmp_path)
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(
        'task_file = "tasks.toml"\nmethods = ["z-icl"]\ninferences = ["channel"]\nseeds = [1]\nexamples = 2\nk = 3\n'
        f'lm = "{lm_folder}"\n[corpus]\npath = "built.zicl"\nencoder = "{tmp_path / "missing"}"\n'
        f'domains = {{ things = "{jsonl.name}" }}\n'
    )
    code, _, err = run("evaluate", experiment, "-o", tmp_path / "rows", "--offline", "--encoder", encoder_folder)
    assert code == 0, err
    info = json.loads(run("corpus", "info", tmp_path / "built.zicl", "--json")[1])
    assert info["index"]["encoder"]["name"] == str(encoder_folder)


@pytest.mark.parametrize("below", [".", "eval"])
def test_files_are_found_in_a_data_folder(run, corpus, lm_folder, tmp_path, below):
    task, place = tmp_path / "own.toml", tmp_path / "data" / below / "Days"
    place.mkdir(parents=True)
    write_task(place)
    columns = [json.loads(line) for line in (place / "train.jsonl").read_text().splitlines()]
    (place / "train.jsonl").unlink()
    (place / "train.csv").write_text(
        "id,text,label\n" + "".join(f"{r['id']},{r['text']},{r['label']}\n" for r in columns)
    )
    task.write_text('[Days]\nlabels = ["terrible", "great"]\n')
    chosen = [
        "--task-file",
        task,
        "--corpus",
        corpus,
        "--lm",
        lm_folder,
        "--k",
        3,
        "--methods",
        "icl-gold",
        "--offline",
    ]
    chosen += ["--seeds", 1, "--inference", "channel", "-o", tmp_path / "r", "--json"]
    code, _, err = run("evaluate", *chosen)
    assert code == 2
    assert "Days" in err
    code, out, err = run("evaluate", *chosen, "--data-dir", tmp_path / "data")
    assert code == 0, err
    assert json.loads(out)["computed"] == 10
    code, _, err = run("evaluate", *chosen, "--data-dir", tmp_path / "nowhere")
    assert code == 2
    assert "--data-dir: there is no folder" in err


def test_a_dry_run_computes_nothing(run, given, tmp_path):
    chosen = [*given, "--methods", "no-demos,z-icl", "--seeds", "1", "-o", tmp_path / "results", "--dry-run", "--json"]
    code, out, err = run("evaluate", *chosen)
    assert code == 0, err
    answer = json.loads(out)
    assert answer["examples"] == 40
    assert answer["tokens"] > 0
    assert answer["seconds"] > 0
    assert not (tmp_path / "results").exists()
    code, out, err = run("evaluate", *chosen, "--shard", "1/2")
    assert code == 0, err
    assert json.loads(out)["examples"] == 20


def test_shards_and_merge(run, given, tmp_path):
    chosen = [*given, "--methods", "no-demos,naive", "--seeds", "1", "--inference", "channel"]
    for part in (1, 2):
        assert run("evaluate", *chosen, "-o", tmp_path / f"p{part}", "--shard", f"{part}/2")[0] == 0
    code, _, err = run("merge", tmp_path / "p1", tmp_path / "p2", "-o", tmp_path / "m")
    assert code == 0, err
    assert "20 rows" in err
    assert ", complete" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--methods", "z-ickl"], "did you mean 'z-icl'?"),
        (["--inference", "chanel"], "--inference: it is not "),
        (["--templates", "tasks"], "--templates: "),
        (["--k", "0"], "--k: "),
        (["--seeds", "x"], "expected whole numbers"),
        (["--shard", "3/2"], "expected I/N"),
        (["--tasks", "SST3"], "unknown task 'SST3'"),
        (["--data", "SST2"], "expected TASK=FILE"),
    ],
)
def test_a_wrong_configuration_is_found_before_anything_is_loaded(run, given, options, message, monkeypatch):
    from zicl.lm import load

    monkeypatch.setattr(load, "load_lm", lambda *_, **__: pytest.fail("a model was loaded"))
    code, _, err = run("evaluate", *given, *options)
    assert code == 2
    assert message in err
    assert "Value error" not in err


def test_an_unknown_key_of_an_experiment_is_named(run, tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('tasks = ["SST2"]\nseed = 3\n')
    code, _, err = run("evaluate", path)
    assert code == 2
    assert "seed: there is no such key" in err


def test_methods_that_need_a_corpus_say_so(run):
    code, _, err = run("evaluate", "--tasks", "SST2", "--methods", "naive,no-demos")
    assert code == 2
    assert "from which to take the demonstrations of: naive" in err
    assert "Value error" not in err


def test_a_model_without_a_chat_template_is_refused_for_instructions(run, given, tmp_path):
    code, _, err = run("evaluate", *given, "--methods", "instruction", "-o", tmp_path / "r")
    assert code == 2
    assert "no chat template" in err
    assert not is_results(tmp_path / "r")


def test_a_finished_run_loads_no_model(run, corpus, lm_folder, tmp_path, monkeypatch):
    tasks = write_task(tmp_path)
    given = ["--task-file", tasks, "--tasks", "Days", "--corpus", corpus, "--lm", lm_folder, "--k", 3, "--offline"]
    chosen = [*given, "--methods", "z-icl,no-demos", "--inference", "direct", "--examples", 3, "-o", tmp_path / "r"]
    code, _, err = run("evaluate", *chosen, "--seeds", 13)
    assert code == 0, err
    # The folder of the tiny model stands for a hash-checked name.
    monkeypatch.setattr("zicl.lab.evaluate.run.catalog", lambda: {str(lm_folder): None})
    monkeypatch.setattr("zicl.lm.load.load_lm", lambda *_, **__: pytest.fail("a model was loaded"))
    code, _, err = run("evaluate", *chosen, "--seeds", 13)
    assert code == 0, err
    assert "0 rows computed" in err
    with pytest.raises(pytest.fail.Exception, match="a model was loaded"):
        run("evaluate", *chosen, "--seeds", "13,21")
    with pytest.raises(pytest.fail.Exception, match="a model was loaded"):
        run("evaluate", *chosen, "--seeds", 13, "--set", "scoring.dtype=bfloat16")
    # Any other model has to be loaded to be compared.
    monkeypatch.setattr("zicl.lab.evaluate.run.catalog", dict)
    with pytest.raises(pytest.fail.Exception, match="a model was loaded"):
        run("evaluate", *chosen, "--seeds", 13)


def test_a_run_killed_before_its_rows_were_compacted_is_finished(run, corpus, lm_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("zicl.lab.evaluate.run.catalog", lambda: {str(lm_folder): None})
    given = ["--task-file", write_task(tmp_path), "--tasks", "Days", "--corpus", corpus, "--lm", lm_folder, "--offline"]
    folder = tmp_path / "r"
    chosen = [*given, "--methods", "no-demos", "--inference", "direct", "--examples", 3, "-o", folder]
    assert run("evaluate", *chosen)[0] == 0
    rows, manifest = (folder / "rows.parquet").read_bytes(), (folder / "manifest.json").read_text()
    # As it is when the last batch is written and nothing else.
    (folder / "rows").mkdir()
    (folder / "rows.parquet").rename(folder / "rows" / "batch.parquet")
    (folder / "manifest.json").write_text(manifest.replace('"complete": true', '"complete": false'))
    code, _, err = run("evaluate", *chosen)
    assert code == 0, err
    assert "zicl report" in err
    assert (folder / "rows.parquet").read_bytes() == rows
    assert (folder / "manifest.json").read_text() == manifest
    assert not (folder / "rows").exists()
