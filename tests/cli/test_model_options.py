"""scoring.device and scoring.dtype: what they do to a model that is loaded here, and where they are refused."""

import json

import pytest

from tests.lab.evaluate.conftest import write_task
from zicl.lab.evaluate.store import ResultsFolder

SPREAD = json.dumps({"": "disk"})


def scores(out):
    return [{key: value for key, value in json.loads(line).items() if "likelihood" in key} for line in out.splitlines()]


def test_a_model_in_other_numbers_and_places(run, options):
    texts = ["classify", "The soup was cold.", "A bold film.", "--json", *options]
    plain, spread, half = (
        run(*texts, *more)
        for more in ([], ["--set", f"scoring.device=map:{SPREAD}"], ["--set", "scoring.dtype=bfloat16"])
    )
    for code, _, err in (plain, spread, half):
        assert code == 0, err
    for mine, same, near in zip(*(scores(out) for _, out, _ in (plain, spread, half)), strict=True):
        assert same == pytest.approx(mine, abs=1e-4)
        assert near != mine


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--set", "scoring.dtype=int3"], "dtype: it is not 'float32', 'bfloat16', 'float16' or 'int8'"),
        (["--set", "scoring.device=map:nowhere"], "is no map of a model's parts to devices"),
        (["--set", "scoring.device=cuda:99"], "the device 'cuda:99' cannot be used here"),
    ],
)
def test_what_cannot_be_is_said(run, options, given, message):
    code, _, err = run("classify", "The soup was cold.", *options, *given)
    assert code == 2
    assert message in err


def test_a_server_decides_for_itself(run, options):
    options[options.index("--lm") + 1] = "http://127.0.0.1:9/v1#tiny"
    code, _, err = run("classify", "The soup was cold.", *options, "--set", "scoring.dtype=bfloat16")
    assert code == 2
    assert "--set scoring.dtype is for a model that is loaded here" in err


def test_a_saved_classifier_has_its_own(run, options, tmp_path):
    code, _, err = run(
        "classify", "The soup was cold.", *options, "--set", "scoring.dtype=bfloat16", "--save", tmp_path / "saved"
    )
    assert code == 0, err
    written = json.loads((tmp_path / "saved" / "classifier.json").read_text())
    assert written["settings"]["scoring"]["dtype"] == "bfloat16"
    code, _, err = run("classify", "The soup was cold.", "--with", tmp_path / "saved", "--set", "scoring.device=cpu")
    assert code == 2
    assert "--with brings its own settings, but --set was given too" in err


def test_experiments_take_them_too(run, corpus, lm_folder, tmp_path):
    tasks = write_task(tmp_path)
    given = ["--task-file", tasks, "--tasks", "Days", "--corpus", corpus, "--lm", lm_folder, "--k", 3, "--offline"]
    chosen = [*given, "--methods", "z-icl", "--inference", "direct", "--seeds", 13, "--examples", 3]
    half = [*chosen, "--set", "scoring.dtype=bfloat16", "--set", "scoring.device=cpu"]
    code, _, err = run("evaluate", *half, "-o", tmp_path / "half")
    assert code == 0, err
    manifest = ResultsFolder.open(tmp_path / "half").manifest
    assert manifest["fingerprint"]["dtype"] == "bfloat16"
    assert manifest["experiment"]["scoring"]["device"] == "cpu"
    code, _, err = run("verify", *half, "-r", tmp_path / "half", "--sample", 3)
    assert code == 0, err
    code, _, err = run("evaluate", *chosen, "-o", tmp_path / "half")
    assert code == 2
    assert "dtype was bfloat16, is float32" in err
    code, _, err = run("evaluate", *chosen, "--set", "scoring.dtype=int3", "-o", tmp_path / "other")
    assert code == 2
    assert "--set scoring: it is not 'float32'" in err
    code, _, err = run("study", "order", *given, "--set", "scoring.device=map:nowhere", "-o", tmp_path / "studies")
    assert code == 2
    assert "is no map" in err


def test_options_go_over_a_studys_settings(tmp_path):
    from zicl.cli.study import StudyCommandOptions
    from zicl.lab.study.context import PLAIN
    from zicl.lab.study.registry import get_studies
    from zicl.lab.study.settings import read_settings

    config = tmp_path / "settings.toml"
    config.write_text('scoring = { dtype = "float16", batch_size = 4 }\n')
    settings = read_settings(config, StudyCommandOptions(settings=["scoring.dtype=bfloat16"]).given())
    scoring = settings.experiment(get_studies("order")[0], PLAIN).scoring
    assert (scoring.dtype, scoring.batch_size, scoring.device) == ("bfloat16", 4, "auto")
