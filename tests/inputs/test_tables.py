"""Rows of a user's file: formats, and errors that name the row."""

import pytest

from zicl.exceptions import ConfigError, InputWarning, TextError
from zicl.inputs.files import TextFile
from zicl.inputs.tables import read_number, read_records, read_rows


def test_all_rows_without_text_are_reported_at_once(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("id,text\n1,One lamp.\n2,\n3, \n4,Two lamps.\n")
    with pytest.raises(TextError, match=r"row 2 below the header, .* as in 2 rows in total \(2, 3\)"):
        read_rows(str(path))
    path.write_text("id,text\n" + "".join(f"{number},\n" for number in range(9)))
    with pytest.raises(TextError, match=r"in 9 rows in total \(1, 2, 3, 4, 5, …\)"):
        read_rows(str(path))
    path.write_text("id,text\n1,One lamp.\n2,\n")
    with pytest.raises(TextError, match="row 2 below the header, column 'text', is empty") as error:
        read_rows(str(path))
    assert "--skip-empty" in error.value.hint


def test_rows_without_text_can_be_kept_as_empty(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("text,then,choices\nOne lamp.,It broke.,a|b\n ,It broke.,a|b\nTwo lamps.,,\n")
    rows = read_rows(str(path), pair_column="then", options_column="choices", skip_empty=True)
    assert [row.empty for row in rows] == [False, True, True]
    assert rows[2].columns["text"] == "Two lamps."
    path.write_text("text,then\nTwo lamps.,\n")
    with pytest.raises(TextError, match="column 'then', is empty"):
        read_rows(str(path), pair_column="then")
    path = tmp_path / "tickets.jsonl"
    path.write_text('{"text": null}\n{"text": "One lamp."}\n')
    assert [row.empty for row in read_rows(str(path), skip_empty=True)] == [True, False]
    path.write_text('{"text": null}\n')
    with pytest.raises(TextError, match="holds no rows with a text"):
        read_rows(str(path), skip_empty=True)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    for encoding in ("utf-8-sig", "utf-8"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(b"\xef\xbb\xbfid,text\n1,One lamp.\n")
        lines = list(TextFile(str(path), encoding).lines())
        assert lines[0] == "id,text\n"
        assert read_records(str(path)) == [{"id": "1", "text": "One lamp."}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,text\n1,One lamp.\n2,Two, or three.\n", "a.csv, row 2 below the header: it has more cells"),
        ("a.csv", "text,label\nA broken\nlamp,bad\n", "a.csv, row 1 below the header: it has fewer cells"),
        (
            "a.csv",
            'id,text\n1,"One lamp.\n2,Two lamps.\n',
            "a.csv, the row that begins in line 2: unexpected end of data",
        ),
        (
            "a.tsv",
            'text\tid\n"One" lamp.\t1\n"Two" lamps.\t2\n',
            "a.tsv, the row that begins in line 2: .* expected after",
        ),
    ],
)
def test_a_row_that_does_not_match_the_header_is_an_error(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(TextError, match=message) as error:
        read_records(str(tmp_path / name))
    assert "quote" in error.value.hint


def test_the_file_name_implies_the_delimiter(tmp_path):
    (tmp_path / "dump.tsv").mkdir()
    for path, mark in ((tmp_path / "A.TSV", "\t"), (tmp_path / "dump.tsv" / "a.csv", ",")):
        path.write_text(f"id{mark}text\n1{mark}One lamp.\n")
        assert read_records(str(path)) == [{"id": "1", "text": "One lamp."}]


def test_invalid_parquet(tmp_path):
    (tmp_path / "a.parquet").write_text("One lamp.")
    with pytest.raises(TextError, match=r"a\.parquet is not a valid Parquet file"):
        read_records(str(tmp_path / "a.parquet"))


def test_jsonl_counts_blank_lines_in_errors_only(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "One lamp."}\n\n"Two lamps."\n')
    assert read_records(str(path)) == [{"text": "One lamp."}, {"text": "Two lamps."}]
    path.write_text('{"text": "One lamp."}\n\nTwo lamps.\n')
    with pytest.raises(TextError, match=r"a\.jsonl, line 3: not JSON"):
        read_records(str(path))


def test_ids_are_unique(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text\n1,One lamp.\n1,Two lamps.\n")
    with pytest.raises(TextError, match="row 2 below the header: the id '1' occurs twice"):
        read_rows(str(path))
    assert [row.id for row in read_rows(str(path), distinct=False)] == ["1", "1"]


def test_rows_without_ids_are_recognised_in_a_longer_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("One lamp.\nOne lamp.\n")
    first, again = (row.id for row in read_rows(str(path)))
    assert again == f"{first}-2"
    path.write_text("Two lamps.\nOne lamp.\nOne lamp.\n")
    assert [row.id for row in read_rows(str(path))][1:] == [first, again]


def test_columns_of_one_name_are_an_error(tmp_path):
    """Which of them is meant cannot be known, and one would be lost in the output."""
    path = tmp_path / "twice.csv"
    path.write_text("id,text,text\n1,a,b\n")
    with pytest.raises(TextError, match="2 columns are called 'text'"):
        read_records(str(path))


@pytest.mark.parametrize("record", [r'{"text": "ok", "\udc00": 1}', r'{"text": "ok", "id": ["\uD800"]}'])
def test_half_of_a_character_in_any_key_or_value_is_an_error_that_names_the_line(tmp_path, record):
    path = tmp_path / "half.jsonl"
    path.write_text('{"text": "\\ud83d\\ude00"}\n' + record + "\n")
    with pytest.raises(TextError, match=r"half.jsonl, line 2: a key or a value holds a broken character"):
        read_rows(str(path))


def test_a_record_nested_too_deeply_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"text": "fine"}\n' + "[" * 200_000 + "\n")
    with pytest.raises(TextError, match=r"deep.jsonl, line 2: not JSON \(nested too deeply\)"):
        read_records(str(path))


def test_two_keys_or_columns_of_one_name_are_refused(tmp_path):
    """One of them would vanish without a word."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "One lamp.", "text": "Two lamps."}\n')
    with pytest.raises(TextError, match=r"a.jsonl, line 1: not JSON \(the key 'text' occurs twice\)"):
        read_records(str(path))
    path = tmp_path / "a.csv"
    path.write_text("text,id,text\nOne lamp.,1,Two lamps.\n")
    with pytest.raises(TextError, match="2 columns are called 'text'"):
        read_records(str(path))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([pa.array(["One lamp."])] * 2, names=["text", "text"]), path)
    with pytest.raises(TextError, match="2 columns are called 'text'"):
        read_records(str(path))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.txt", "a.parquet", "a.jsonl.gz", "a.csv.zst"])
def test_a_record_over_the_limit_is_refused_by_line_and_option(tmp_path, monkeypatch, name):
    import gzip

    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard

    monkeypatch.setenv("ZICL_MAX_RECORD_MB", "1")
    path, text = tmp_path / name, "lamp " * (1 << 18)
    if name == "a.parquet":
        pq.write_table(pa.table({"text": ["fine", text]}), path)
    else:
        rows = {"jsonl": '{"text": "fine"}\n{"text": "%s"}\n', "csv": 'text\n"%s"\n', "txt": "fine\n%s\n"}
        content = (rows[name.split(".")[1]] % text).encode()
        pack = {"gz": gzip.compress, "zst": zstandard.compress}.get(name.split(".")[-1], bytes)
        path.write_bytes(pack(content))
    with pytest.raises(TextError, match="more than 1 million characters") as error:
        read_records(str(path))
    assert "2: it has" in str(error.value)
    assert "ZICL_MAX_RECORD_MB" in error.value.hint
    monkeypatch.setenv("ZICL_MAX_RECORD_MB", "2")
    assert len(read_records(str(path))) == 1 + ("csv" not in name)


def test_a_csv_record_of_many_lines_is_within_the_limit_too(tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_MAX_RECORD_MB", "1")
    path = tmp_path / "a.csv"
    path.write_text("text\nfine\n" + '"' + "lamp\n" * (1 << 18) + '"\n')
    with pytest.raises(TextError, match="the row that begins in line 3: it has more than 1 million"):
        read_records(str(path))


def test_a_large_record_in_a_small_file_takes_no_memory(tmp_path):
    """900 MB of one record in 0.9 MB of gzip: refused when the limit is reached."""
    import gzip
    import tracemalloc

    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b'{"text": "')
        for _ in range(100):
            stream.write(b"a" * (1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(TextError, match="line 1: it has more than 32 million characters"):
            read_records(str(path))
        assert tracemalloc.get_traced_memory()[1] < 160 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("limit", ["0", "many", "99999"])
def test_a_limit_that_is_none_is_refused(tmp_path, monkeypatch, limit):
    monkeypatch.setenv("ZICL_MAX_RECORD_MB", limit)
    (tmp_path / "a.txt").write_text("One lamp.\n")
    with pytest.raises(ConfigError, match="ZICL_MAX_RECORD_MB"):
        read_records(str(tmp_path / "a.txt"))


SEMICOLONS = 'id;text;share\n1;"One lamp, lit; and warm.";0,5\n2;Two lamps.;1,25\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", SEMICOLONS),
        ("a.tsv", SEMICOLONS),
        ("a.csv", SEMICOLONS.replace("id;text;share", '"id";"text";"share"')),
        ("a.csv", "id\ttext\tshare\n1\tOne lamp, lit; and warm.\t0,5\n2\tTwo lamps.\t1,25\n"),
        ("a.tsv", 'id,text,share\n1,"One lamp, lit; and warm.","0,5"\n2,Two lamps.,"1,25"\n'),
    ],
)
def test_another_delimiter_is_read_and_said(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.warns(InputWarning, match=rf"{name}: cells are separated by (semicolon|tab|comma)s, as in its header"):
        found = read_records(str(tmp_path / name))
    assert found == [
        {"id": "1", "text": "One lamp, lit; and warm.", "share": "0,5"},
        {"id": "2", "text": "Two lamps.", "share": "1,25"},
    ]
    assert [read_number(record["share"]) for record in found] == [0.5, 1.25]


def test_the_line_that_excel_reads_says_what_separates_cells(tmp_path):
    path = tmp_path / "a.csv"
    for line in ("sep=;", '"SEP=;"', "sep=;\r"):
        path.write_text(f"\ufeff{line}\n{SEMICOLONS}", encoding="utf-8", newline="")
        assert [record["share"] for record in read_records(str(path))] == ["0,5", "1,25"]
    path.write_text('sep=,\nComments; be honest\n"Fine; nothing to add."\nGood\n')
    assert read_records(str(path))[0] == {"Comments; be honest": "Fine; nothing to add."}
    path.write_text('sep=;\nid;text\n1;"One lamp.\n')
    with pytest.raises(TextError, match="the row that begins in line 3"):
        read_records(str(path))


def test_a_header_that_only_holds_a_semicolon_is_not_split_silently(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Comments; be honest\nGood\n")
    with pytest.raises(
        TextError, match=r"row 1 below the header: it has fewer cells .*, separated by semicolons"
    ) as error:
        read_records(str(path))
    assert "sep=," in error.value.hint
    path.write_text("text\nOne; two; three.\n")
    assert read_records(str(path)) == [{"text": "One; two; three."}]
    path.write_text("text,note; more\nOne; two.,a\n")
    assert read_records(str(path)) == [{"text": "One; two.", "note; more": "a"}]


def test_excels_unicode_text_is_a_table_with_tabs(tmp_path):
    table = "id\ttext\r\n1\tOne lamp.\r\n"
    (tmp_path / "a.txt").write_text(table, encoding="utf-16", newline="")
    with pytest.raises(TextError, match=r"a\.txt is a table with tabs") as error:
        read_records(str(tmp_path / "a.txt"))
    assert error.value.hint == "rename it to a.tsv"
    (tmp_path / "a.txt").rename(tmp_path / "a.tsv")
    assert read_records(str(tmp_path / "a.tsv")) == [{"id": "1", "text": "One lamp."}]


def test_numbers_are_read_with_a_point_or_a_comma():
    assert [read_number(value) for value in ("0.5", "0,5", "1,2E-05", 3, "1,000.5", "1,2,3", "nan", None)] == [
        0.5, 0.5, 1.2e-05, 3.0, None, None, None, None,
    ]  # fmt: skip
