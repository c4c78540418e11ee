"""Outputs of ``zicl classify`` read back: labels, margins, pairs, and labels that differ from row to row."""

import csv
import json

import pytest

from tests.apps.check.reports import LABELS, predictions
from zicl.apps.check.predictions import read_predictions
from zicl.exceptions import TextError
from zicl.inputs.output import OutputFile
from zicl.inputs.pair import Pair


def columns(row):
    return {"id": row.id, "text": row.text, "predicted": row.predicted, "margin": row.margin} | {
        f"p:{label}": 0.5 for label in LABELS
    }


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_outputs_are_read(tmp_path, suffix):
    rows = [columns(row) for row in predictions(5)]
    path = tmp_path / f"out{suffix}"
    if suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, labels = read_predictions(path)
    assert labels == LABELS
    assert [(row.id, row.margin) for row in found] == [(row.id, row.margin) for row in predictions(5)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predicted": "windy"}, "row 2: the predicted label 'windy' is unknown"),
        ({"margin": "high"}, "row 2: 'high' in column 'margin' is not a number"),
        ({"margin": None}, "row 2: None in column 'margin'"),
    ],
)
def test_bad_outputs_are_named(tmp_path, change, message):
    first, second = (columns(row) for row in predictions(2))
    path = tmp_path / "out.jsonl"
    path.write_text("\n".join(map(json.dumps, [first, {**second, **change}])))
    with pytest.raises(TextError, match=message):
        read_predictions(path)
    path.write_text(json.dumps({"id": 1, "text": "No predictions here."}))
    with pytest.raises(TextError, match="no columns p:LABEL"):
        read_predictions(path)


def test_the_default_columns_are_those_that_were_classified(tmp_path):
    path = tmp_path / "out.csv"
    shares = {"p:calm": 0.7, "p:stormy": 0.3, "p:foggy": None}
    row = {"id": "a", "first": "Wind.", "then": "Waves.", "allowed": "stormy|calm", "predicted": "", "margin": 0.4}
    settings = {"columns": ["first", "then", "allowed"], "labels": "[[label]]"}
    output = OutputFile(path, settings, [*row, *shares], text_columns=["first", "then"])
    output.write([row | shares])
    (found,), labels = read_predictions(path)
    assert (found.text, found.choices) == (Pair("Wind.", "Waves."), {"calm": "calm", "stormy": "stormy"})
    # Left for review: the best of the labels that the row may have.
    assert (found.predicted, labels) == ("calm", LABELS)
    (named,), _ = read_predictions(path, text_column="then", pair_column="first")
    assert named.text == Pair("Waves.", "Wind.")


def test_counted_labels_have_the_words_of_the_row(tmp_path):
    path = tmp_path / "out.jsonl"
    row = {"id": "a", "text": "What falls?", "choices": ["rain", "a stone"], "predicted": "2", "margin": 0.1}
    path.write_text(json.dumps(row | {"p:1": 0.45, "p:2": 0.55, "p:3": None}))
    (found,), _ = read_predictions(path, options_column="choices")
    assert found.choices == {"1": "rain", "2": "a stone"}
    # Options that are numbers themselves: their position counts.
    numbers = {"choices": ["2", "1"], "p:1": 0.45, "p:2": 0.55, "p:3": None}
    settings = {"columns": ["text", None, "choices"], "labels": "count = 3\n"}
    note = {"settings": settings, "id": "id", "bytes": 0, "sha256": "0" * 64}
    (tmp_path / ".out.jsonl.zicl.json").write_text(json.dumps(note))
    path.write_text(json.dumps(row | numbers))
    (found,), _ = read_predictions(path)
    assert found.choices == {"1": "2", "2": "1"}
    path.write_text(json.dumps(row | {"predicted": "3", "p:1": 0.45, "p:2": 0.55, "p:3": None}))
    with pytest.raises(TextError, match=r"'3' is unknown\n.*are: 1, 2"):
        read_predictions(path, options_column="choices")
    (tmp_path / ".out.jsonl.zicl.json").unlink()
    with pytest.raises(TextError, match=r"not all labels have a probability.*\n.*--options-column"):
        read_predictions(path)
