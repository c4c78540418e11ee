"""Reading sources of every format as blocks, with errors that name the place."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from zicl.corpus.reader import SourceReader
from zicl.corpus.sources import Source, find_sources
from zicl.exceptions import MissingExtraError, TextError

TEXTS = ["One lamp. Two lamps.", "A train\n\nA second paragraph of it.", "Ünïcode — pears 🍐."]


def write(path, kind):
    if kind == "txt":
        data = "<|endoftext|>".join(TEXTS).encode()
    elif kind == "jsonl":
        data = "".join(json.dumps({"text": t, "n": 1}) + "\n" for t in TEXTS).encode()
    elif kind == "csv":
        data = ("text,n\n" + "".join(f'"{t}",1\n' for t in TEXTS)).encode()
    else:
        pq.write_table(pa.table({"text": TEXTS}), path)
        return path
    if path.suffix == ".gz":
        data = gzip.compress(data)
    if path.suffix == ".zst":
        data = zstandard.compress(data)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "name", ["a.txt", "a.txt.gz", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.csv", "a.csv.zst", "a.parquet"]
)
def test_every_format_gives_the_same_blocks(tmp_path, name):
    path = write(tmp_path / name, name.split(".")[1])
    [source] = find_sources([path])
    blocks = [(b.group, b.text.strip()) for b in SourceReader(source).blocks()]
    assert blocks == [(0, TEXTS[0]), (1, "A train"), (1, "A second paragraph of it."), (2, TEXTS[2])]


def test_the_file_name_implies_the_delimiter_and_compression(tmp_path):
    (tmp_path / "A.TSV").write_text("id\ttext\n1\tOne lamp.\n")
    (tmp_path / "A.TXT.GZ").write_bytes(gzip.compress(b"One lamp."))
    for source in find_sources([tmp_path]):
        assert [block.text for block in SourceReader(source).blocks()] == ["One lamp."]


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Some text.\n\nMore.\n")))
    assert [b.text.strip() for b in SourceReader(Source("-", "text", "txt")).blocks()] == ["Some text.", "More."]


def test_lines_makes_each_line_a_record(tmp_path):
    (tmp_path / "a.txt").write_text("first ticket\nsecond ticket\n\nthird\n")
    [source] = find_sources([tmp_path / "a.txt"])
    assert [b.record for b in SourceReader(source, lines=True).blocks()] == [0, 1, 2]
    assert [(b.record, b.group) for b in SourceReader(source).blocks()] == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.png", b"x", "cannot be read"),
        ("a.jsonl", b'{"text": "ok"}\nnot json\n', "line 2: not JSON"),
        ("a.jsonl", b'{"body": "ok"}\n', "no column 'text'"),
        ("a.jsonl", b'{"text": 5}\n', "holds int, not text"),
        ("a.csv", b"body\nhello\n", "no column 'text'"),
        ("a.txt", b"fine\nbad \xff byte\n", "line 2: byte 0xff is not utf-8"),
        ("a.csv", b"text;more\tid\nOne lamp.\n", "its header has semicolons and tabs, but no comma"),
        ("a.xlsx", b"One lamp.", "a.xlsx is not an .xlsx workbook"),
        ("a.arrow", b"One lamp.", "a.arrow is not a valid Arrow file"),
        ("a.csv", b"id,text\n1,Two, or three.\n", "row 1 below the header: it has more cells"),
        ("a.tsv", b'text\tid\n"One" lamp.\t1\n', "the row that begins in line 2: .* expected after"),
        ("a.parquet", b"One lamp.", "a.parquet is not a valid Parquet file"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "broken character"),
        ("a.jsonl.gz", b"not gzip", "is damaged"),
        ("a.parquet.gz", b"x", "cannot be read"),
        ("a.txt", b"nul \x00 byte\n", "NUL byte"),
    ],
)
def test_bad_input_is_named(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(TextError, match=message) as error:
        list(SourceReader(find_sources([tmp_path / name])[0]).blocks())
    assert error.value.hint


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_data_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "set").mkdir()
    write(tmp_path / "set" / "train.parquet", "parquet")
    blocks = list(SourceReader(Source(f"hf:{tmp_path / 'set'}", "text", "hf")).blocks())
    assert [b.record for b in blocks] == [0, 1, 1, 2]


def test_missing_extra_names_the_pip_command(monkeypatch):
    monkeypatch.setattr("zicl._util.process.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="data sets needs packages that are not installed: datasets") as error:
        list(SourceReader(Source("hf:owner/name", "text", "hf")).blocks())
    assert error.value.hint == 'pip install "zicl[data]"'
