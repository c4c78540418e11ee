"""An exported folder runs alone and gives the classifier's probabilities; what cannot be exported is refused."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.apps.distill.conftest import SENTENCES
from tests.conftest import BagEncoder
from zicl import ZICLClassifier
from zicl.apps.export import script
from zicl.apps.export.run import TOLERANCE, export
from zicl.exceptions import StorageError, UsageError

LABELS = ["film", "food", "train"]
ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
from predict import Classifier
classifier = Classifier(sys.argv[1])
rows = classifier.predict_proba(["The soup was cold.", "A long film about a lighthouse. " * 60])
assert not {"torch", "zicl", "transformers"} & set(sys.modules), "something else was imported"
print(rows.tolist())
"""


@pytest.mark.real
def test_the_folder_runs_alone(tmp_path, run):
    """Everything through the programs that a user calls, on the real encoder."""
    classifier = ZICLClassifier(None, LABELS, method="z-icl+").fit(SENTENCES)
    classifier.save(tmp_path / "three.zicl-clf")
    code, out, err = run("export", tmp_path / "three.zicl-clf", "-o", tmp_path / "three-onnx", "--json")
    assert code == 0, err
    assert json.loads(out)["output"].endswith("three-onnx")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, tmp_path / "three-onnx"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    texts = ["The soup was cold.", "A long film about a lighthouse. " * 60]
    expected = [list(prediction.probabilities.values()) for prediction in classifier.classify(texts)]
    assert np.abs(np.array(json.loads(done.stdout)) - expected).max() < TOLERANCE
    with (tmp_path / "texts.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["text"], *([text] for text in SENTENCES)])
    script = [sys.executable, tmp_path / "three-onnx/predict.py", tmp_path / "texts.csv"]
    done = subprocess.run(script, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""}, check=False)
    assert done.returncode == 0, done.stderr
    (tmp_path / "other.csv").write_text("body\nThe soup was cold.\n")
    other = subprocess.run([*script[:2], tmp_path / "other.csv"], capture_output=True, text=True, check=False)
    assert (other.returncode, other.stdout) == (1, "")
    assert "there is no column text" in other.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["label"] for row in rows] == [prediction.label for prediction in classifier.classify(SENTENCES)]
    assert "film, food, train" in (tmp_path / "three-onnx/README.md").read_text()
    code, _, err = run("export", tmp_path / "three.zicl-clf", "-o", tmp_path / "three-onnx")
    assert code != 0
    assert "exists already" in err


def test_the_script_says_what_is_wrong_with_its_file(tmp_path):
    (tmp_path / "latin.txt").write_bytes("The crème was cold.\n".encode("latin-1"))
    for path, said in (
        (tmp_path / "missing.csv", "missing.csv cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "latin.txt", "latin.txt is not UTF-8"),
        # What is no file is read too.
        (Path("/dev/stdin"), "/dev/stdin: row 2 has no text"),
    ):
        done = subprocess.run(
            [sys.executable, script.__file__, path],
            input="The soup was cold.\n\n",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_what_asks_a_language_model_is_refused(index, lm, tmp_path):
    classifier = ZICLClassifier(index, ["terrible", "great"], lm, method="no-demos").fit()
    with pytest.raises(UsageError, match="asks a language model about every text"):
        export(classifier, tmp_path / "out")


def test_the_command_loads_no_language_model_to_refuse_it(run, index, lm, tmp_path, monkeypatch):
    ZICLClassifier(index, ["terrible", "great"], lm, method="no-demos").fit().save(tmp_path / "asks.zicl-clf")
    monkeypatch.setattr("zicl.classifier.load", lambda *_, **__: pytest.fail("it was loaded"))
    code, _, err = run("export", tmp_path / "asks.zicl-clf", "-o", tmp_path / "out")
    assert code == 2
    assert "no-demos asks a language model about every text" in err


def test_an_encoder_without_onnx_is_refused(tmp_path):
    classifier = ZICLClassifier(None, LABELS, encoder=BagEncoder(), method="encoder").fit()
    with pytest.raises(UsageError, match="only ONNX encoders") as raised:
        export(classifier, tmp_path / "out")
    assert "bge-small-en-v1.5" in raised.value.hint
    assert not (tmp_path / "out").exists()


def test_another_folder_is_not_replaced(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/labels.json").write_text("{}")
    classifier = ZICLClassifier(None, LABELS, encoder=BagEncoder(), method="encoder").fit()
    with pytest.raises(StorageError, match="exists already: it is a folder, and an exported classifier was expected"):
        export(classifier, tmp_path / "notes", overwrite=True)


def test_only_a_saved_classifier_is_exported(run, tmp_path):
    code, _, err = run("export", tmp_path / "missing.zicl-clf", "-o", tmp_path / "out")
    assert code == 2
    assert "is not a saved classifier" in err
