"""Drawing rows to label: every kind of row, without repetition, with weights that sum to all of them."""

import csv
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.check.sample import allocate, draw
from zicl.check.sheet import Prediction, key_path, read_predictions, read_sheet, write_sheet
from zicl.exceptions import StorageError, TextError, UsageError

LABELS = ("calm", "stormy", "foggy")


def predictions(count, labels=LABELS):
    return [
        Prediction(f"r{n}", f"Weather report number {n}.", labels[n * n % len(labels)], (n * 37 % 101) / 100)
        for n in range(count)
    ]


many = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])), min_size=1).map(
    lambda rows: [Prediction(f"r{n}", f"Report {n}.", label, margin) for n, (label, margin) in enumerate(rows)]
)


@given(many, st.integers(3, 60), st.integers(0, 3), st.randoms(use_true_random=False))
def test_draws_are_whole_and_repeatable(rows, wanted, seed, random):
    sheet = draw(rows, LABELS, wanted, seed)
    assert sum(row.weight for row in sheet.rows) == pytest.approx(len(rows))
    ids = [row.prediction.id for row in sheet.rows]
    assert len(set(ids)) == len(ids) == min(wanted, len(rows))
    assert {row.prediction.predicted for row in sheet.rows} == {row.predicted for row in rows}
    assert draw(random.sample(rows, len(rows)), LABELS, wanted, seed) == sheet


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 100))
def test_allocation_is_equal_as_far_as_it_can_be(sizes, rows):
    given_ = allocate(sizes, rows)
    assert sum(given_.values()) == min(rows, sum(sizes.values()))
    open_ = [count for name, count in given_.items() if count < sizes[name]]
    assert all(count <= sizes[name] for name, count in given_.items())
    assert not open_ or max(given_.values()) - min(open_) <= 1


def test_strata_are_labels_and_thirds_of_the_margins():
    sheet = draw(predictions(900), LABELS, 90, seed=1)
    # No square is 2 modulo 3: two labels are predicted at all.
    assert set(Counter(row.stratum for row in sheet.rows).values()) == {15}
    by_stratum = {row.stratum: [] for row in sheet.rows}
    for row in sheet.rows:
        by_stratum[row.stratum].append(row.prediction.margin)
    assert sorted(by_stratum) == [f"{label} {band}/3" for label in ("calm", "stormy") for band in (1, 2, 3)]
    assert max(by_stratum["calm 1/3"]) <= min(by_stratum["calm 2/3"])
    assert max(by_stratum["calm 2/3"]) <= min(by_stratum["calm 3/3"])
    assert draw(predictions(900), LABELS, 90, seed=2) != sheet
    with pytest.raises(UsageError, match="1 rows cannot stand for 2"):
        draw(predictions(900), LABELS, 1)


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
    odd = Prediction("x", 'Rain, "they" said:\nsnow – ☃', "foggy", 0.123456)
    sheet = draw([odd, *predictions(20)], LABELS, 9)
    write_sheet(path, sheet)
    assert read_sheet(path) == sheet
    write_sheet(path, sheet)
    fill(path, x="Stormy ")
    assert [row.prediction.id for row in read_sheet(path).rows if row.gold == "stormy"] == ["x"]
    with pytest.raises(StorageError, match="1 labels filled in by hand"):
        write_sheet(path, sheet)
    write_sheet(path, sheet, overwrite=True)
    assert not any(row.gold for row in read_sheet(path).rows)
    path.write_text("id,text\n1,Something else.\n")
    with pytest.raises(StorageError, match="no sheet to label"):
        write_sheet(path, sheet)
    with pytest.raises(UsageError, match=r"is a \.csv file"):
        write_sheet(tmp_path / "x.jsonl", sheet)


def test_the_sheet_shows_nothing_of_the_predictions(tmp_path):
    path = tmp_path / "to_label.csv"
    write_sheet(path, draw(predictions(20), LABELS, 9))
    text = path.read_text(encoding="utf-8-sig")
    assert text.splitlines()[0] == "id,text,gold"
    assert not any(label in text for label in LABELS)
    key_path(path).unlink()
    with pytest.raises(StorageError, match=r"what zicl predicted .* is not there"):
        read_sheet(path)
    key_path(path).write_text("{}")
    with pytest.raises(StorageError, match="is damaged"):
        read_sheet(path)


def test_rows_are_known_by_id_or_text_and_may_be_taken_out(tmp_path):
    path = tmp_path / "to_label.csv"
    same = [Prediction(name, "The same again.", "calm", 0.5) for name in ("03", "04")]
    write_sheet(path, draw([Prediction("007", "Wind  from\nthe west.", "calm", 0.5), *same], LABELS, 3))
    # As a spreadsheet program leaves it: the id a number, the white space another, two rows gone.
    path.write_text("id,text,gold\n7,Wind from the west.,calm\n", encoding="utf-8")
    assert {row.prediction.id: row.gold for row in read_sheet(path).rows} == {"007": "calm", "03": "", "04": ""}
    for strange in ("9,Never drawn.,calm", "3,The same again.,calm"):
        path.write_text(f"id,text,gold\n{strange}\n", encoding="utf-8")
        with pytest.raises(TextError, match=r"row 1 below the header: the id '.' is none of those that were drawn"):
            read_sheet(path)


def test_unknown_gold_labels_are_named(tmp_path):
    path = tmp_path / "to_label.csv"
    write_sheet(path, draw(predictions(9), LABELS, 9))
    fill(path, r4="windy")
    with pytest.raises(
        TextError, match=r"row \d below the header \(id r4\): the label 'windy' .*\n.*calm, stormy, foggy"
    ):
        read_sheet(path)
