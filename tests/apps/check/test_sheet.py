"""The sheet: its columns, the hidden predictions, and labels read back from it."""

import csv
import errno
import json
from pathlib import Path

import pytest

from tests.apps.check.reports import LABELS, predictions
from zicl.apps.check.predictions import OutputPrediction
from zicl.apps.check.sample import stratified_sample
from zicl.apps.check.sheet import key_path, read_sheet, write_sheet
from zicl.exceptions import InputWarning, StorageError, TextError, UsageError
from zicl.inputs.pair import Pair


def fill(path, **gold):
    """Write labels into a sheet, by id."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows({**row, "gold": gold.get(row["id"], row["gold"])} for row in rows)


def test_the_sheet_is_written_read_and_kept(tmp_path):
    path = tmp_path / "to_label.csv"
    odd = OutputPrediction("x", 'Rain, "they" said:\nsnow – ☃', "foggy", 0.123456)
    sheet = stratified_sample([odd, *predictions(20)], LABELS, 9)
    write_sheet(path, sheet)
    assert read_sheet(path) == sheet
    write_sheet(path, sheet)
    fill(path, x="Stormy ")
    assert [row.prediction.id for row in read_sheet(path).rows if row.gold == "stormy"] == ["x"]
    with pytest.raises(StorageError, match="1 label filled in by hand"):
        write_sheet(path, sheet)
    write_sheet(path, sheet, overwrite=True)
    assert not any(row.gold for row in read_sheet(path).rows)
    path.write_text("id,text\n1,Something else.\n")
    with pytest.raises(StorageError, match="it is a file, and a sheet to label was expected"):
        write_sheet(path, sheet)
    with pytest.raises(UsageError, match=r"is a \.csv or \.xlsx file"):
        write_sheet(tmp_path / "x.jsonl", sheet)


def test_the_sheet_shows_nothing_of_the_predictions(tmp_path):
    path = tmp_path / "to_label.csv"
    write_sheet(path, stratified_sample(predictions(20), LABELS, 9))
    text = path.read_text(encoding="utf-8-sig")
    assert text.splitlines()[0] == "id,text,gold"
    assert not any(label in text for label in LABELS)
    key_path(path).unlink()
    with pytest.raises(StorageError, match=r"holds the predictions .* is missing"):
        read_sheet(path)
    key_path(path).write_text("{}")
    with pytest.raises(StorageError, match="is damaged"):
        read_sheet(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("margin", None),
        ("weight", "1"),
        ("weight", -1.0),
        ("choices", ["a"]),
        ("text", 5),
        ("predicted", [1]),
        ("id", {}),
    ],
)
def test_a_value_of_the_key_that_is_not_what_it_should_be_is_named(tmp_path, name, value):
    path = tmp_path / "to_label.csv"
    write_sheet(path, stratified_sample(predictions(20), LABELS, 9))
    content = json.loads(key_path(path).read_text())
    content["rows"][1][name] = value
    key_path(path).write_text(json.dumps(content))
    with pytest.raises(StorageError, match=rf"is damaged: rows\.1\.{name}") as error:
        read_sheet(path)
    assert "draw the sheet again" in error.value.hint


def test_a_full_disk_leaves_the_old_sheet_and_what_belongs_to_it(tmp_path, monkeypatch):
    path, real = tmp_path / "to_label.csv", Path.write_text
    write_sheet(path, stratified_sample(predictions(20), LABELS, 9))
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}

    def full(self, text, **given):
        if self.name.startswith(".to_label.csv."):
            raise OSError(errno.ENOSPC, "full", str(self))
        return real(self, text, **given)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StorageError, match="the disk is full"):
        write_sheet(path, stratified_sample(predictions(20), LABELS, 12), overwrite=True)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_rows_are_matched_by_id_or_text_and_may_be_removed(tmp_path):
    path = tmp_path / "to_label.csv"
    same = [OutputPrediction(name, "The same again.", "calm", 0.5) for name in ("03", "04")]
    write_sheet(
        path, stratified_sample([OutputPrediction("007", "Wind  from\nthe west.", "calm", 0.5), *same], LABELS, 3)
    )
    # As a spreadsheet program leaves it: the id a number, white space changed, two rows removed.
    path.write_text("id,text,gold\n7,Wind from the west.,calm\n", encoding="utf-8")
    assert {row.prediction.id: row.gold for row in read_sheet(path).rows} == {"007": "calm", "03": "", "04": ""}
    for strange in ("9,Never drawn.,calm", "3,The same again.,calm"):
        path.write_text(f"id,text,gold\n{strange}\n", encoding="utf-8")
        with pytest.raises(TextError, match=r"row 1 below the header: the id '.' is none of those that were drawn"):
            read_sheet(path)


def test_unknown_gold_labels_are_named(tmp_path):
    path = tmp_path / "to_label.csv"
    write_sheet(path, stratified_sample(predictions(9), LABELS, 9))
    fill(path, r4="windy")
    with pytest.raises(
        TextError, match=r"row \d below the header \(id r4\): the label 'windy' .*\n.*calm, stormy, foggy"
    ):
        read_sheet(path)


def test_pairs_and_the_choices_of_a_row_are_shown(tmp_path):
    path = tmp_path / "to_label.csv"
    rain = OutputPrediction("a", Pair("It rains.", "The street is wet."), "1", 0.5, {"1": "yes", "2": "perhaps"})
    sun = OutputPrediction("b", Pair("It shines.", "It is night."), "3", 0.2, {"1": "yes", "2": "perhaps", "3": "no"})
    sheet = stratified_sample([rain, sun], ("1", "2", "3"), 2)
    write_sheet(path, sheet)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        shown = {row.pop("id"): row for row in csv.DictReader(stream)}
    expected = {"text": "It rains.", "second text": "The street is wet.", "choices": "1: yes | 2: perhaps", "gold": ""}
    assert shown["a"] == expected
    assert read_sheet(path) == sheet
    fill(path, a="2", b="No")
    assert {row.prediction.id: row.gold for row in read_sheet(path).rows} == {"a": "2", "b": "3"}
    fill(path, a="2: PERHAPS")
    assert {row.prediction.id: row.gold for row in read_sheet(path).rows} == {"a": "2", "b": "3"}
    fill(path, a="3")
    with pytest.raises(TextError, match=r"\(id a\): the label '3' .*\n.*one of: 1, 2;"):
        read_sheet(path)


def test_a_number_that_is_one_choice_and_the_words_of_another_is_refused(tmp_path):
    path = tmp_path / "to_label.csv"
    write_sheet(
        path, stratified_sample([OutputPrediction("a", "Two and two?", "1", 0.5, {"1": "4", "2": "1"})], ("1", "2"), 1)
    )
    fill(path, a="1")
    with pytest.raises(TextError, match=r"may be any of 1, 2\n.*1: 4 \| 2: 1"):
        read_sheet(path)
    fill(path, a="1: 4")
    assert read_sheet(path).rows[0].gold == "1"


def test_formulas_are_escaped_and_matched_again(tmp_path):
    path = tmp_path / "to_label.csv"
    texts = ["=1+1", " - Great product", "@anna thanks", "'tis a mere\rquote"]
    drawn = [
        OutputPrediction(f"{n}", text, "calm", 0.5)
        for n, text in enumerate(Pair(each, "-rain").strip() for each in texts)
    ]
    write_sheet(path, stratified_sample(drawn, LABELS, 4))
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = {row["id"]: row for row in csv.DictReader(stream)}
    assert [rows["0"]["text"], rows["1"]["second text"]] == ["'=1+1", "'-rain"]
    # A spreadsheet program made all ids equal: rows are matched by their text.
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows["0"])
        writer.writeheader()
        writer.writerows({**row, "id": "1.2E+18", "gold": "foggy"} for row in rows.values())
    assert {row.prediction.id: row.gold for row in read_sheet(path).rows} == dict.fromkeys("0123", "foggy")


def test_a_text_under_the_id_of_another_is_refused(tmp_path):
    path = tmp_path / "to_label.csv"
    write_sheet(path, stratified_sample(predictions(2), LABELS, 2))
    path.write_text("id,text,gold\nr0,Weather report number 1.,calm\n", encoding="utf-8")
    with pytest.raises(TextError, match="the id 'r0' is that of another row"):
        read_sheet(path)
    path.write_text("id,text,gold\n" + "r0,Weather report number 0.,calm\n" * 2, encoding="utf-8")
    with pytest.raises(TextError, match="the row 'r0' occurs twice"):
        read_sheet(path)


def test_a_workbook_is_a_sheet_too(tmp_path):
    from openpyxl import load_workbook

    path = tmp_path / "to_label.xlsx"
    odd = OutputPrediction("007", "=1+1 lamps, they said", "foggy", 0.5)
    sheet = stratified_sample([odd, *predictions(5)], LABELS, 6)
    write_sheet(path, sheet)
    assert read_sheet(path) == sheet
    book = load_workbook(path)
    assert [cell.value for cell in book.active[1]] == ["id", "text", "gold"]
    for row in book.active.iter_rows(min_row=2):
        row[2].value = "calm" if row[0].value == "007" else None
        row[0].value = 7 if row[0].value == "007" else row[0].value
    book.save(path)
    assert {row.prediction.id: row.gold for row in read_sheet(path).rows if row.gold} == {"007": "calm"}
    with pytest.raises(StorageError, match="1 label filled in by hand"):
        write_sheet(path, sheet)


def test_a_sheet_saved_with_semicolons_is_read(tmp_path):
    path = tmp_path / "to_label.csv"
    write_sheet(path, stratified_sample(predictions(3), LABELS, 3))
    rows = ["id;text;gold", *(f"r{n};Weather report number {n}.;foggy" for n in range(3))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-16")
    with pytest.warns(InputWarning, match="semicolons"):
        assert [row.gold for row in read_sheet(path).rows] == ["foggy"] * 3


def test_labels_that_a_spreadsheet_takes_for_numbers_or_booleans(tmp_path):
    from zicl.apps.check.sheet import read_gold
    from zicl.inputs.excel import write_workbook

    records = [{"text": "One lamp.", "gold": 0}, {"text": "Two lamps.", "gold": True}, {"text": "Three.", "gold": None}]
    write_workbook(tmp_path / "gold.xlsx", ["text", "gold"], records)
    assert read_gold(tmp_path / "gold.xlsx", ["0", "1", "true"]) == {"One lamp.": "0", "Two lamps.": "true"}
