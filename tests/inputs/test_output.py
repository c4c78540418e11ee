"""Output files: resumed after the last complete chunk, and never changed after others wrote to them."""

import csv
import io
import json
import os

import pytest

from zicl.exceptions import MissingExtraError, StorageError, TextError, UsageError, ZICLError
from zicl.inputs.output import (
    OutputFile,
    OutputMetadata,
    check_output_path,
    check_rows_fit,
    metadata_path,
    to_csv,
    to_json,
)
from zicl.inputs.tables import InputRow, read_records

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


def test_it_resumes_after_the_last_complete_chunk(path):
    assert [one.id for one in opened(path).pending([row("r1"), row("r2", "Snow,\rand more."), row("r3")])] == ["r3"]
    with path.open("ab") as stream:
        stream.write(b"half a ro")
    again = opened(path)
    assert again.truncated == 9
    assert path.read_bytes().endswith(b"\n")


def test_a_changed_text_or_choice_is_an_error(path):
    for other in (row("r1", "Hail."), row("r1", allowed="a|c")):
        with pytest.raises(UsageError, match="has another text"):
            opened(path).pending([other])


@pytest.mark.parametrize("change", [lambda old: b"\xef\xbb\xbf" + old, lambda old: old.replace(b"\n", b"\r\n")])
def test_a_file_saved_by_a_spreadsheet_is_not_changed(path, change):
    changed = change(path.read_bytes())
    path.write_bytes(changed)
    with pytest.raises(StorageError, match="was changed since zicl last wrote"):
        opened(path)
    assert path.read_bytes() == changed
    assert not opened(path, overwrite=True).done


def test_the_note_records_the_classified_columns(path, tmp_path):
    assert OutputMetadata.read(path) == OutputMetadata("text", None, "allowed", "id", counted=True, exists=True)
    assert OutputMetadata.read(tmp_path / "moved.csv") == OutputMetadata()
    workbook = tmp_path / "out.xlsx"
    opened(workbook).write([record(row("r1"))])
    assert OutputMetadata.read(tmp_path / "out.xlsx#zicl") == OutputMetadata.read(path)


def test_nothing_is_written_before_the_first_chunk(tmp_path, path):
    opened(tmp_path / "new" / "out.csv")
    assert not (tmp_path / "new").exists()
    before = path.read_bytes()
    opened(path, overwrite=True)
    assert path.read_bytes() == before
    opened(path, overwrite=True).write([record(row("r9"))])
    assert [one["id"] for one in opened(path).records()] == ["r9"]


def test_a_missing_text_is_the_same_in_every_format(tmp_path):
    target = tmp_path / "out.csv"
    missing = InputRow("r1", "", {"id": "r1", "text": None, "allowed": "a|b"}, empty=True)
    opened(target).write([record(missing)])
    assert opened(target).pending([missing]) == []


def test_a_place_that_cannot_be_written_to_is_found_first(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file"):
        check_output_path(tmp_path / "file" / "out.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        check_output_path(tmp_path / "folder.csv")


def test_what_is_read_from_or_is_no_file_is_not_written_to(tmp_path):
    rows, link, pipe = tmp_path / "rows.csv", tmp_path / "link.csv", tmp_path / "pipe.csv"
    rows.write_text("id,text\n")
    link.symlink_to(rows)
    for output in (rows, link):
        with pytest.raises(UsageError, match="is read from"):
            check_output_path(output, [tmp_path / "missing.csv", rows])
    check_output_path(tmp_path / "out.csv", [rows])
    book = tmp_path / "book.xlsx"
    book.touch()
    for sheet in ("book.xlsx#May", "book.xlsx"):
        with pytest.raises(UsageError, match="is read from"):
            check_output_path(book, [tmp_path / sheet])
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="a pipe"):
        check_output_path(pipe)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".xlsx", ".parquet"])
def test_a_link_stays_and_the_file_it_leads_to_is_written(tmp_path, suffix):
    link, real = tmp_path / f"link{suffix}", tmp_path / "real" / f"out{suffix}"
    real.parent.mkdir()
    link.symlink_to(real)
    for more in ({}, {"overwrite": True}):
        file = opened(link, **more)
        file.write([record(row("r1"))])
        file.finish()
        assert link.is_symlink()
        assert [one["id"] for one in read_records(str(real))] == ["r1"]
    assert opened(link).pending([row("r1")]) == []


def test_a_note_of_another_kind_of_output(tmp_path):
    path = tmp_path / "answers.jsonl"
    OutputFile(path, {"seed": 1}, ["id"]).write([{"id": "a"}])
    with pytest.raises(UsageError, match="was not written by zicl classify"):
        OutputMetadata.read(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda note: [], "not an object with keys"),
        (lambda note: {}, "settings: it is missing"),
        (lambda note: {**note, "settings": None}, "settings: it is not an object"),
        (lambda note: {**note, "bytes": -1}, "bytes: it is too small"),
        (lambda note: {**note, "bytes": "9"}, "bytes: it is not a whole number"),
        (lambda note: {**note, "id": 5}, "id: it is not a string"),
        (lambda note: {**note, "settings": {**note["settings"], "columns": ["text"]}}, "columns"),
        (lambda note: {**note, "settings": {**note["settings"], "labels": None}}, "labels: it is not a string"),
    ],
)
def test_a_note_that_is_damaged_says_what_to_do(path, change, said):
    note = metadata_path(path)
    note.write_text(json.dumps(change(json.loads(note.read_text()))))
    with pytest.raises(StorageError, match="is damaged") as error:
        OutputMetadata.read(path)
    assert said in str(error.value)
    assert "--overwrite" in error.value.hint
    with pytest.raises(ZICLError):
        opened(path)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.xlsx", "out.parquet"])
def test_formats_that_are_written(tmp_path, name):
    check_output_path(tmp_path / name)
    for other in ("out.xls", "out", "out.csv.gz"):
        with pytest.raises(UsageError, match=r"as \.csv, \.jsonl, \.xlsx or \.parquet"):
            check_output_path(tmp_path / other)


@pytest.fixture(params=[".xlsx", ".parquet"])
def made(request, tmp_path):
    return tmp_path / f"out{request.param}"


def names(path):
    return [one["id"] for one in read_records(str(path))]


def test_a_file_is_made_of_the_rows_when_all_are_there(made):
    output = opened(made)
    output.write([record(row("r1"))])
    output.write([record(row("r2", "=Snow,\rand more."))])
    assert not made.exists()
    # Killed here; the rows are beside it.
    again = opened(made)
    assert list(again.done) == ["r1", "r2"]
    again.write([record(row("r3"))])
    again.finish()
    assert names(made) == ["r1", "r2", "r3"]
    assert read_records(str(made))[1]["text"] == "=Snow,\rand more."
    before = made.read_bytes()
    finished = opened(made)
    assert finished.pending([row("r1"), row("r4")]) == [row("r4")]
    finished.finish()
    assert made.read_bytes() == before
    finished.write([record(row("r4"))])
    finished.finish()
    assert names(opened(made).path) == ["r1", "r2", "r3", "r4"]


def test_the_rows_of_a_file_that_was_moved_away_are_not_in_the_next(made):
    output = opened(made)
    output.write([record(row("r1"))])
    output.finish()
    made.rename(made.with_stem("march"))
    with pytest.raises(StorageError, match="was written and is gone") as error:
        opened(made)
    assert "--overwrite" in error.value.hint
    anew = opened(made, overwrite=True)
    anew.write([record(row("r2"))])
    # Killed here: it was not made yet.
    opened(made).finish()
    assert names(made) == ["r2"]


def test_a_run_that_is_killed_before_the_file_is_there_resumes(made, monkeypatch):
    output = opened(made)
    output.write([record(row("r1"))])
    with monkeypatch.context() as patch:
        interrupt_replacing(patch, made)
        with pytest.raises(KeyboardInterrupt):
            output.finish()
    assert not made.exists()
    opened(made).finish()
    assert names(made) == ["r1"]


def interrupt_replacing(patch, path):
    """Make whatever puts a file at this path end as if it were killed."""

    def replace_path(finished, target, *, replace):
        if target == path:
            raise KeyboardInterrupt
        os.replace(finished, target)

    patch.setattr("zicl._util.files.replace_path", replace_path)


def test_a_file_that_was_edited_is_not_replaced(made):
    output = opened(made)
    output.write([record(row("r1"))])
    output.finish()
    made.write_bytes(made.read_bytes() + b" ")
    with pytest.raises(StorageError, match="was changed since zicl last wrote"):
        opened(made)
    anew = opened(made, overwrite=True)
    assert not anew.done
    anew.write([record(row("r2"))])
    # It is not there with the rows of another run.
    assert not made.exists()
    anew.finish()
    assert names(made) == ["r2"]


def test_a_run_that_is_killed_while_it_replaces_the_file_resumes(made, monkeypatch):
    output = opened(made)
    output.write([record(row("r1"))])
    output.finish()
    output.write([record(row("r2"))])

    with monkeypatch.context() as patch:
        interrupt_replacing(patch, made)
        with pytest.raises(KeyboardInterrupt):
            output.finish()
    assert names(made) == ["r1"]
    again = opened(made)
    again.finish()
    assert names(made) == ["r1", "r2"]


def test_a_file_without_its_rows_is_not_replaced(made):
    made.write_bytes(b"mine")
    with pytest.raises(StorageError, match=rf"one that zicl wrote, with \.{made.name}\.rows\.jsonl beside it, was"):
        opened(made)
    assert made.read_bytes() == b"mine"
    made.unlink()
    (made.parent / f".{made.name}.rows.jsonl").touch()
    with pytest.raises(
        StorageError, match=rf"/\.{made.name}\.rows\.jsonl exists already: it is a file, and one that zicl wrote"
    ):
        opened(made)


def test_what_a_file_cannot_hold_is_found_before_it_is_computed(tmp_path):
    long = [row("r1", "a" * 40_000)]
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        check_rows_fit(tmp_path / name, long)
    with pytest.raises(UsageError, match="a cell holds 32,767 characters"):
        check_rows_fit(tmp_path / "out.xlsx", long)
    # An array of a Parquet file: what is no number is null in the file of rows, and so in the workbook.
    numbers = [InputRow("r1", "a", {"text": "a", "n": [float("nan")] * 6_000})]
    with pytest.raises(UsageError, match="column 'n', has 36,000"):
        check_rows_fit(tmp_path / "out.xlsx", numbers)
    mixed = [InputRow("r1", "a", {"text": "a", "n": 1}), InputRow("r2", "b", {"text": "b", "n": "one"})]
    check_rows_fit(tmp_path / "out.xlsx", mixed)
    with pytest.raises(TextError, match="'n' cannot be written as Parquet"):
        check_rows_fit(tmp_path / "out.parquet", mixed)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.xlsx", "out.parquet", None])
@pytest.mark.parametrize("value", [b"\xff", {"image": {"bytes": b"\xff"}}, [("key", b"\xff")]])
def test_bytes_are_not_written_as_what_python_prints(tmp_path, name, value):
    path, rows = None if name is None else tmp_path / name, [InputRow("r1", "a", {"text": "a", "scan": value})]
    with pytest.raises(TextError, match="the column 'scan' holds bytes"):
        check_rows_fit(path, rows)


def test_writing_a_workbook_needs_a_package(tmp_path, monkeypatch):
    monkeypatch.setattr("zicl._util.process.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="openpyxl"):
        check_output_path(tmp_path / "out.xlsx")


def test_carriage_returns_come_back():
    values = [("one\rtwo", "1"), ('three "and"\r\nfour', "2"), ("five", "3")]
    for columns in (["a", "b"], ["a\rb", "c"]):
        rows = [dict(zip(columns, row, strict=True)) for row in values]
        assert list(csv.DictReader(io.StringIO(to_csv(rows, columns), newline=""))) == rows


def test_json_has_no_value_that_is_no_number():
    record = {"a": float("nan"), "b": [1.5, float("inf")], "c": {"d": -float("inf")}, "e": "NaN"}
    assert to_json(record) == '{"a": null, "b": [1.5, null], "c": {"d": null}, "e": "NaN"}'
