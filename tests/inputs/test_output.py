"""Outputs that grow: what is there stays, what others wrote into them is neither cut nor taken for ours."""

import csv
import io
import json

import pytest

from zicl.exceptions import StorageError, UsageError
from zicl.inputs.output import OutputFile, OutputNote, to_csv
from zicl.inputs.tables import InputRow

SETTINGS = {"seed": 1, "columns": ["text", None, "allowed"], "labels": "count = 3\n"}


def opened(path, **options):
    columns = ["id", "text", "allowed", "predicted"]
    return OutputFile(path, SETTINGS, columns, text_columns=["text", "allowed"], **options)


def row(name, text="Rain.", allowed="a|b"):
    return InputRow(name, text, {"id": name, "text": text, "allowed": allowed})


def record(one):
    return {**one.columns, "predicted": "1"}


@pytest.fixture(params=[".csv", ".jsonl"])
def path(request, tmp_path):
    target = tmp_path / f"out{request.param}"
    opened(target).write([record(row("r1")), record(row("r2", "Snow,\rand more."))])
    return target


def test_it_goes_on_where_it_was(path):
    assert [one.id for one in opened(path).left([row("r1"), row("r2", "Snow,\rand more."), row("r3")])] == ["r3"]
    with path.open("ab") as stream:
        stream.write(b"half a ro")
    again = opened(path)
    assert again.cut == 9
    assert path.read_bytes().endswith(b"\n")


def test_another_text_or_another_choice_is_another_row(path):
    for other in (row("r1", "Hail."), row("r1", allowed="a|c")):
        with pytest.raises(UsageError, match="has another text"):
            opened(path).left([other])


@pytest.mark.parametrize("change", [lambda old: b"\xef\xbb\xbf" + old, lambda old: old.replace(b"\n", b"\r\n")])
def test_what_a_spreadsheet_wrote_is_left_alone(path, change):
    changed = change(path.read_bytes())
    path.write_bytes(changed)
    with pytest.raises(StorageError, match="was changed since zicl last wrote"):
        opened(path)
    assert path.read_bytes() == changed
    assert not opened(path, overwrite=True).done


def test_files_of_before_hashes_were_noted_are_read(path):
    note = path.with_name(f".{path.name}.zicl.json")
    kept = {name: value for name, value in json.loads(note.read_text()).items() if name in ("settings", "bytes")}
    note.write_text(json.dumps(kept))
    assert list(opened(path).done) == ["r1", "r2"]


def test_it_is_known_how_it_was_made(path, tmp_path):
    assert OutputNote.of(path) == OutputNote("text", None, "allowed", "id", counted=True, noted=True)
    assert OutputNote.of(tmp_path / "moved.csv") == OutputNote()


def test_carriage_returns_come_back():
    rows = [{"a": "one\rtwo", "b": "1"}, {"a": 'three "and"\r\nfour', "b": "2"}, {"a": "five", "b": "3"}]
    assert list(csv.DictReader(io.StringIO(to_csv(rows, ["a", "b"]), newline=""))) == rows
