"""Parquet and Arrow files: of any writer, few rows at a time, and columns of one type."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zicl.exceptions import TextError
from zicl.inputs import arrow
from zicl.inputs.arrow import arrow_rows, check_parquet_fits, write_parquet
from zicl.inputs.tables import read_records, read_rows

TABLE = pa.table({"id": [1, 2], "text": ["One lamp.", "Two lamps."]})


def write(path, form):
    if form == "feather":
        import pandas as pd

        pd.DataFrame(TABLE.to_pydict()).to_feather(path)
    elif form == "polars":
        import polars as pl

        pl.DataFrame(TABLE.to_pydict()).write_ipc(path)
    else:
        make = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
        with make(str(path), TABLE.schema) as writer:
            writer.write_table(TABLE)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.arrow", "file"),
        ("a.arrow", "stream"),
        ("a.feather", "feather"),
        ("A.FEATHER", "feather"),
        ("a.ipc", "polars"),
    ],
)
def test_arrow_files_of_all_writers_are_read(tmp_path, name, form):
    write(tmp_path / name, form)
    assert read_records(str(tmp_path / name)) == TABLE.to_pylist()
    assert [row.id for row in read_rows(str(tmp_path / name))] == ["1", "2"]
    assert next(arrow_rows(str(tmp_path / name), "arrow", ["text"])) == (1, {"text": "One lamp."})


def test_rows_come_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "_ROWS", 1)
    write(tmp_path / "a.arrow", "file")
    assert [number for number, _ in arrow_rows(str(tmp_path / "a.arrow"), "arrow")] == [1, 2]


def test_a_damaged_file_and_columns_of_one_name_are_refused(tmp_path):
    write(tmp_path / "a.arrow", "file")
    for content in (b"", b"One lamp.", (tmp_path / "a.arrow").read_bytes()[:200]):
        (tmp_path / "a.arrow").write_bytes(content)
        with pytest.raises(TextError, match=r"a.arrow is not a valid Arrow file"):
            read_records(str(tmp_path / "a.arrow"))
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), pa.schema([("text", pa.string())] * 2)):
        pass
    with pytest.raises(TextError, match="2 columns are called 'text'"):
        read_records(str(tmp_path / "a.arrow"))


def write_column(path, values):
    table = pa.table({"text": ["One lamp.", "Two lamps."], "odd": values})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    return str(path)


both_kinds = pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])


@both_kinds
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.date32(), 3_700_000, "12100-04-04"),
        (pa.date32(), -800_000, "-0221-09-04"),
        (pa.timestamp("s"), 300_000_000_000, "11476-08-15 05:20:00"),
        (pa.timestamp("s", "UTC"), 300_000_000_000, "11476-08-15 05:20:00"),
    ],
)
def test_a_time_beyond_those_of_python_is_its_text(tmp_path, name, kind, value, text):
    rows = read_records(write_column(tmp_path / name, pa.array([value, 0], kind)))
    assert rows[0]["odd"].startswith(text)
    # The others of its column are what they always are.
    assert rows[1]["odd"].year == 1970


@both_kinds
@pytest.mark.parametrize(
    "values",
    [
        pa.array([1_000_000_000_000, 0], pa.timestamp("s", "UTC")),
        pa.array([10**15, 0], pa.duration("s")),
        pa.array([1, 2], pa.timestamp("us", "Mars/Olympus")),
        pa.array([[3_700_000], []], pa.list_(pa.date32())),
        pa.StructArray.from_arrays([pa.array([1, 2])] * 2, names=["a", "a"]),
    ],
)
def test_a_column_that_cannot_be_read_is_named_and_the_file_is_not_called_damaged(tmp_path, name, values):
    path = write_column(tmp_path / name, values)
    with pytest.raises(TextError, match=f"{name}: the column 'odd' has values of the type") as error:
        read_records(path)
    assert "string" in error.value.hint
    assert [row["text"] for _, row in arrow_rows(path, name[2:], ["text"])] == ["One lamp.", "Two lamps."]


@both_kinds
def test_a_row_is_as_long_as_the_entries_of_a_dictionary_that_it_names(tmp_path, name, monkeypatch):
    monkeypatch.setenv("ZICL_MAX_RECORD_MB", "1")
    entries = pa.array([str(number) * 700_000 for number in range(10)] + ["x" * 1_200_000])
    chosen = pa.DictionaryArray.from_arrays(pa.array([3, 7], pa.int32()), entries)
    for values in (chosen, pa.ListArray.from_arrays([0, 1, 2], chosen), pa.StructArray.from_arrays([chosen], ["a"])):
        rows = read_records(write_column(tmp_path / name, values))
        assert [str(row["odd"])[-9:].strip("'}]")[-1] for row in rows] == ["3", "7"]
    wrong = pa.DictionaryArray.from_arrays(pa.array([3, 10], pa.int32()), entries)
    with pytest.raises(TextError, match="row 2: it has more than 1 million characters"):
        read_records(write_column(tmp_path / name, wrong))


def test_columns_are_written_with_the_types_of_their_values(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, ["text", "margin", "note"], [{"text": "One lamp.", "margin": 0.5}, {"text": None, "margin": 1}])
    assert pq.read_schema(path).types == [pa.string(), pa.float64(), pa.null()]
    assert read_records(str(path))[0] == {"text": "One lamp.", "margin": 0.5, "note": None}


def test_a_map_is_read_as_pairs_and_refused_as_what_it_is(tmp_path):
    values = pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64()))
    rows = read_records(write_column(tmp_path / "a.parquet", values))
    assert [row["odd"] for row in rows] == [[("a", 1)], []]
    with pytest.raises(TextError, match="what lists hold, have to be of one type") as error:
        check_parquet_fits(rows)
    assert "leave the column out" in error.value.hint
    assert "a map is read as lists" in error.value.hint


def test_values_of_several_types_in_a_column_are_refused():
    check_parquet_fits([{"n": 1}, {"n": 2.5}, {"m": None}])
    for mixed in ([{"n": 1}, {"n": "a"}], [{"n": 2**70}], [{"n": 1}, {"n": True}], [{"n": {}}], [{"n": [{"a": {}}]}]):
        with pytest.raises(TextError, match="the column 'n' cannot be written as Parquet") as error:
            check_parquet_fits(mixed)
        assert ".csv" in error.value.hint


@pytest.mark.parametrize("columns", [{}, {"text": pa.nulls(2)}])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_without_values_are_refused(tmp_path, kind, columns):
    # Such a file of some hundred bytes can claim any number of rows.
    path = tmp_path / f"empty.{kind}"
    table = pa.table(columns)
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(TextError, match=r"empty\.\w+ has no column with values"):
        list(arrow_rows(str(path), kind))
