"""``zicl suggest`` on tiny models: its output and its exit codes."""

import json

import pytest

from tests.cli.conftest import write_texts
from zicl.lm.hf import HFLanguageModel


@pytest.fixture
def texts(tmp_path):
    return write_texts(tmp_path / "rows.csv", 30, column="body", takes=15)


def test_signs_for_people(run, options, texts):
    code, out, err = run("suggest", "-f", texts, "--text-column", "body", "--sample", 6, *options)
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "12 signs from 6 of 15 different texts"
    levels = [line.split()[0] for line in lines if line.startswith(("warn", "look", "good"))]
    assert len(levels) == 12
    assert levels == sorted(levels, key=["warn", "look", "good"].index)
    assert "same label under another seed: " in out
    assert lines[-1].startswith("these are signs, not an accuracy")
    assert lines[-1].endswith("zicl check sample labelled.csv -o to_label.csv")
    assert "asking the language model: direct, seed 0" in err


def test_signs_for_machines(run, options, texts):
    code, out, err = run("suggest", "-f", texts, "--text-column", "body", "--sample", 6, "--json", *options)
    assert code == 0, err
    found = json.loads(out)
    assert list(found) == ["texts", "distinct", "sampled", "signals", "note"]
    assert (found["texts"], found["distinct"], found["sampled"]) == (30, 15, 6)
    for signal in found["signals"]:
        assert list(signal) == ["name", "value", "level", "meaning", "option"]
        assert signal["level"] in ("good", "look", "warn")
        assert signal["option"]
    assert "not an accuracy" in found["note"]


def test_options_that_are_fitted_cost_nothing_and_change_nothing(run, options, texts, monkeypatch):
    calls, real = [], HFLanguageModel.score

    def score(self, prompts, progress=None):
        calls.append(len(prompts))
        return real(self, prompts, progress)

    monkeypatch.setattr(HFLanguageModel, "score", score)
    command = ["suggest", "-f", texts, "--text-column", "body", "--sample", 6, "--json", *options]
    bare = run(*command)
    assert calls == [6] * 4
    full = ["--calibrate", "batch", "--inference", "both"]
    full += ["--set", "calibration.texts=9", "--set", "retrieval.share=3"]
    assert run(*command, *full)[:2] == bare[:2]
    assert calls == [6] * 8


def test_a_saved_classifier_is_looked_at_too(run, options, texts, tmp_path):
    saved = tmp_path / "film.zicl-clf"
    assert run("classify", "A bold film.", "--save", saved, *options)[0] == 0
    command = ["suggest", "-f", texts, "--text-column", "body", "--sample", 6, "--json"]
    code, out, err = run(*command, "--with", saved, "--offline")
    assert code == 0, err
    assert out == run(*command, *options)[1]
    code, _, err = run(*command, "--with", saved, "--calibrate", "batch", "--offline")
    assert code == 2
    assert "--with brings its own settings" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no column 'text'"),
        (["--text-column", "body", "--set", "retrieval.method=phisical"], "physical"),
        (["--text-column", "body", "--labels", "2"], "the options differ from text to text"),
        (["--text-column", "body", "--sample", "1"], "--sample"),
    ],
)
def test_bad_input_is_named(run, options, texts, arguments, message):
    code, out, err = run("suggest", "-f", texts, *options, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_too_few_texts_are_an_error(run, options, tmp_path):
    (tmp_path / "few.txt").write_text("One.\nTwo.\nTwo.\n")
    code, out, err = run("suggest", "-f", tmp_path / "few.txt", *options)
    assert (code, out) == (2, "")
    assert "2 different texts were given" in err


def test_pairs_have_signs_too(run, options, texts):
    pairs = ["--text-column", "body", "--pair-column", "body", "--template", "pair"]
    code, out, err = run("suggest", "-f", texts, *pairs, "--sample", 6, *options)
    assert code == 0, err
    assert "texts cut at the token limit" in out
