"""``zicl distill`` on tiny models: from a file of texts to predictions without a language model."""

import csv
import json

import pytest

from tests.cli.conftest import LABELS, write_texts
from zicl.classifier import ZICLClassifier
from zicl.inputs.output import OutputFile

COUNT = 60


@pytest.fixture
def texts(tmp_path):
    return write_texts(tmp_path / "rows.csv", COUNT)


@pytest.fixture
def queried(monkeypatch):
    """Collect the texts that the language model classifies."""
    seen, real = [], ZICLClassifier.classify

    def classify(self, texts, progress=None):
        seen.extend(texts)
        return real(self, texts, progress)

    monkeypatch.setattr(ZICLClassifier, "classify", classify)
    return seen


def test_from_texts_to_labels(run, options, texts, tmp_path, queried):
    target, labelled = tmp_path / "fast.zicl-clf", tmp_path / "out.csv"
    code, out, err = run("distill", "-f", texts, "-o", target, "--sample", 40, *options)
    assert code == 0, err
    assert len(queried) == len(set(queried)) == 40
    assert "of 8 held-out texts" in out
    assert "always predicting" in out
    assert "60 rows, 60 different texts; the language model labels 40 of them" in err
    assert "s per row on this machine" in err or "rows per second on this machine" in err
    assert not target.with_name("fast.zicl-clf.partial").exists()

    code, out, err = run("classify", "--with", target, "-f", texts, "-o", labelled, "--offline")
    assert code == 0, err
    assert len(queried) == 40
    with labelled.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == COUNT
    assert list(rows[0]) == ["id", "text", "predicted", "probability", "margin"]
    assert "60 rows are in" in run("classify", "--with", target, "-f", texts, "-o", labelled, "--offline")[2]
    code, out, err = run("classify", "A bold film.", "--with", target, "--offline", "--json", "--save", tmp_path / "c")
    assert code == 0, err
    record = json.loads(out)
    assert record["predicted"] in LABELS.split(",")
    assert record["p:great"] + record["p:terrible"] == pytest.approx(1, abs=1e-5)
    assert (tmp_path / "c" / "weights.safetensors").is_file()
    code, _, err = run("classify", "-f", texts, "--pair-column", "text", "--with", target, "--offline")
    assert code == 2
    assert "distilled from single texts, and these are pairs" in err


def test_json_holds_the_agreement(run, options, texts, tmp_path):
    target = tmp_path / "fast.zicl-clf"
    code, out, err = run("distill", "-f", texts, "-o", target, "--sample", 20, "--json", *options)
    assert code == 0, err
    result = json.loads(out)
    assert result["output"] == str(target)
    assert result["agreement"]["rows"] == 4
    assert result["agreement"]["majority"] >= 0.5
    assert json.loads((target / "classifier.json").read_text())["distilled"]["agreement"] == result["agreement"]


def test_a_killed_run_queries_nothing_twice_and_ends_with_the_same_weights(
    run,
    options,
    texts,
    tmp_path,
    queried,
    monkeypatch,
):
    complete, target = tmp_path / "complete.zicl-clf", tmp_path / "killed.zicl-clf"
    assert run("distill", "-f", texts, "-o", complete, "--sample", 40, *options)[0] == 0
    queried.clear()
    real, writes = OutputFile.write, []

    def killed(self, records):
        if writes:
            raise KeyboardInterrupt
        writes.append(len(records))
        real(self, records)

    with monkeypatch.context() as patch:
        patch.setattr(OutputFile, "write", killed)
        code, _, err = run("distill", "-f", texts, "-o", target, "--sample", 40, *options)
        assert code == 130
        assert "run the same command again" in err
    first = queried[:16]
    queried.clear()
    assert not target.exists()
    # The rest of an interrupted write is truncated.
    with (tmp_path / "killed.zicl-clf.partial" / "answers.jsonl").open("ab") as stream:
        stream.write(b'{"id": "half')
    code, _, err = run("distill", "-f", texts, "-o", target, "--sample", 40, *options)
    assert code == 0, err
    assert len(queried) == 24
    assert not set(queried) & set(first)
    assert (target / "weights.safetensors").read_bytes() == (complete / "weights.safetensors").read_bytes()
    assert (target / "classifier.json").read_text() == (complete / "classifier.json").read_text()


def test_probabilities_of_other_settings_are_not_mixed_in(run, options, texts, tmp_path, queried, monkeypatch):
    target, command = tmp_path / "x.zicl-clf", ["distill", "-f", texts, "--sample", 20, *options]
    with monkeypatch.context() as patch:
        patch.setattr("zicl.apps.distill.run.train", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(*command, "-o", target)
    queried.clear()
    code, _, err = run(*command, "-o", target, "--seed", 3)
    assert code == 2
    assert "begun with other settings (seed)" in err
    assert queried == []
    assert run(*command, "-o", target, "--overwrite")[0] == 0
    assert queried == []
    code, _, err = run(*command, "-o", target)
    assert code == 1
    assert "exists already" in err
    before = (target / "classifier.json").read_text()
    assert run(*command, "-o", target, "--seed", 3, "--overwrite")[0] == 0
    assert (target / "classifier.json").read_text() != before
    assert len(queried) == 20


def test_what_needs_a_language_model_says_so(run, options, texts, tmp_path):
    target = tmp_path / "fast.zicl-clf"
    assert run("distill", "-f", texts, "-o", target, "--sample", 10, *options)[0] == 0
    code, _, err = run("distill", "-f", texts, "-o", tmp_path / "z", *options, "--labels", 2)
    assert code == 2
    assert "differ from text to text" in err
    assert not list(tmp_path.glob("z*"))
    for command in (["explain", "A film."], ["prompt", "A film."], ["distill", "-f", texts, "-o", tmp_path / "y"]):
        code, out, err = run(*command, "--with", target, "--offline")
        assert (code, out) == (2, "")
        assert "is distilled: it has no language model" in err
    code, _, err = run("classify", "A film.", "--with", target, "--lm", "smollm2-135m", "--offline")
    assert code == 2
    assert "needs no corpus and no language model" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-o", "x.zicl-clf"], 2, "--file"),
        (["-f", "rows.csv"], 2, "--output"),
        (["-f", "none.csv", "-o", "x.zicl-clf", "--labels", "a,b"], 2, "there is no file"),
        (["-f", "rows.csv", "-o", "x.zicl-clf", "--sample", "2"], 2, "--sample"),
        (["-f", "rows.csv", "-o", "x.zicl-clf", "--held-out", "1"], 2, "--held-out"),
        (["-f", "rows.csv", "-o", "x.zicl-clf", "--text-column", "body", "--labels", "a,b"], 2, "no column 'body'"),
        (["-f", "few.txt", "-o", "x.zicl-clf", "--labels", "a,b"], 2, "1 different text was given"),
        (["-f", "rows.csv", "-o", "x.zicl-clf"], 2, "no labels were given"),
        (["-f", "rows.csv", "-o", "there", "--labels", "a,b"], 1, "exists already"),
        (["-f", "rows.csv", "-o", "kept", "--overwrite", "--labels", "a,b"], 1, "and a saved classifier was expected"),
    ],
)
def test_errors_say_what_to_do_and_leave_nothing_behind(run, texts, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    for name in ("there", "kept"):
        (tmp_path / name).mkdir()
    (tmp_path / "kept" / "thesis.txt").write_text("Years of work.")
    (tmp_path / "few.txt").write_text("One text.\nOne text.\n")
    before = sorted(tmp_path.iterdir())
    found, out, err = run("distill", *arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before
