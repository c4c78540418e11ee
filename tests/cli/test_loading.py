"""--device and --dtype: what they do to a model that is loaded here, and what they are refused for."""

import json

import pytest

SPREAD = json.dumps({"": "disk"})


def scores(out):
    return [{key: value for key, value in json.loads(line).items() if "likelihood" in key} for line in out.splitlines()]


def test_a_model_in_other_numbers_and_places(run, options):
    texts = ["classify", "The soup was cold.", "A bold film.", "--json", *options]
    plain, spread, half = (run(*texts, *more) for more in ([], ["--device", f"map:{SPREAD}"], ["--dtype", "bfloat16"]))
    for code, _, err in (plain, spread, half):
        assert code == 0, err
    for mine, same, near in zip(*(scores(out) for _, out, _ in (plain, spread, half)), strict=True):
        assert same == pytest.approx(mine, abs=1e-4)
        assert near != mine


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--dtype", "int3"], "dtype: "),
        (["--device", "map:nowhere"], "is no map of a model's parts to devices"),
        (["--device", "cuda:99"], "the device 'cuda:99' cannot be used here"),
    ],
)
def test_what_cannot_be_is_said(run, options, given, message):
    code, _, err = run("classify", "The soup was cold.", *options, *given)
    assert code == 2
    assert message in err


def test_a_server_decides_for_itself(run, options):
    options[options.index("--lm") + 1] = "http://127.0.0.1:9/v1#tiny"
    code, _, err = run("classify", "The soup was cold.", *options, "--dtype", "bfloat16")
    assert code == 2
    assert "--dtype is for a model that is loaded here" in err


def test_a_saved_classifier_has_its_own(run, options, tmp_path):
    code, _, err = run("classify", "The soup was cold.", *options, "--dtype", "bfloat16", "--save", tmp_path / "saved")
    assert code == 0, err
    written = json.loads((tmp_path / "saved" / "classifier.json").read_text())
    assert written["settings"]["scoring"]["dtype"] == "bfloat16"
    code, _, err = run("classify", "The soup was cold.", "--with", tmp_path / "saved", "--device", "cpu")
    assert code == 2
    assert "--with brings its own settings, but --device was given too" in err
