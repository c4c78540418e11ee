import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from zicl.corpus.reader import SourceReader
from zicl.corpus.sources import Source, find_sources
from zicl.exceptions import TextError
from zicl.inputs.files import TextFile
from zicl.inputs.tables import read_records

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


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Some text.\n\nMore.\n")))
    assert [b.text.strip() for b in SourceReader(Source("-", "text", "txt")).blocks()] == ["Some text.", "More."]


def test_lines_makes_each_line_a_record(tmp_path):
    (tmp_path / "a.txt").write_text("first ticket\nsecond ticket\n\nthird\n")
    [source] = find_sources([tmp_path / "a.txt"])
    assert [b.record for b in SourceReader(source, lines=True).blocks()] == [0, 1, 2]
    assert [(b.record, b.group) for b in SourceReader(source).blocks()] == [(0, 0), (1, 0)]


def test_a_folder_is_read_in_sorted_order(tmp_path):
    for name in ("b.txt", "a.txt", "photo.png"):
        (tmp_path / name).write_text("x")
    assert [s.name for s in find_sources([tmp_path])] == ["a.txt", "b.txt"]


def test_domains_are_kept(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert [s.domain for s in find_sources([], {"films": [tmp_path / "a.txt"]})] == ["films"]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.png", b"x", "cannot be read"),
        ("a.jsonl", b'{"text": "ok"}\nnot json\n', "line 2: not JSON"),
        ("a.jsonl", b'{"body": "ok"}\n', "no column 'text'"),
        ("a.jsonl", b'{"text": 5}\n', "holds int, not text"),
        ("a.csv", b"body\nhello\n", "no column 'text'"),
        ("a.txt", b"fine\nbad \xff byte\n", "line 2: byte 0xff is not utf-8"),
        ("a.csv", b"id;text\n1;Two, or three.\n", "semicolons stand between the names of its header"),
        ("a.csv", b"id\ttext\n1\tOne.\n", "tabs stand between"),
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


def test_the_hint_for_another_encoding_is_one_that_helps(tmp_path):
    path = tmp_path / "a.txt"
    for encoding in ("latin1", "utf-16"):
        path.write_text("fine\ncaf\u00e9\n", encoding=encoding)
        with pytest.raises(TextError, match="is not utf-8 text") as error:
            list(SourceReader(find_sources([path])[0]).blocks())
        assert f"iconv -f {encoding} " in error.value.hint


def test_missing_files_and_empty_folders(tmp_path):
    with pytest.raises(TextError, match="there is no file"):
        find_sources([tmp_path / "none.txt"])
    with pytest.raises(TextError, match="holds no file"):
        find_sources([tmp_path])
    with pytest.raises(TextError, match="no input"):
        find_sources([])


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_data_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "set").mkdir()
    write(tmp_path / "set" / "train.parquet", "parquet")
    blocks = list(SourceReader(Source(f"hf:{tmp_path / 'set'}", "text", "hf")).blocks())
    assert [b.record for b in blocks] == [0, 1, 1, 2]


def test_missing_extra_names_the_pip_command(monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "datasets":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Exception, match=r"zicl\[data\]"):
        list(SourceReader(Source("hf:owner/name", "text", "hf")).blocks())


def _read(path):
    [source] = find_sources([path])
    return [block.text.strip() for block in SourceReader(source).blocks()]


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
def test_a_row_that_does_not_fit_the_header_is_never_taken_in_part(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(TextError, match=message) as refused:
        _read(tmp_path / name)
    assert "quote" in refused.value.hint
    with pytest.raises(TextError, match=message):
        read_records(str(tmp_path / name))


def test_tabs_are_told_by_the_files_own_name(tmp_path):
    (tmp_path / "dump.tsv").mkdir()
    for path, mark in ((tmp_path / "A.TSV", "\t"), (tmp_path / "dump.tsv" / "a.csv", ",")):
        path.write_text(f"id{mark}text\n1{mark}One lamp.\n")
        assert _read(path) == ["One lamp."]


@pytest.mark.parametrize("cut", [slice(-5), slice(40)])
def test_a_compressed_file_that_is_cut_is_damaged(tmp_path, cut):
    path, line = tmp_path / "a.txt.zst", b"One lamp, number %d.\n\n"
    whole = b"".join(zstandard.compress(b"".join(line % n for n in range(part, part + 999))) for part in (0, 999))
    path.write_bytes(whole)
    assert len(_read(path)) == 2 * 999
    path.write_bytes(whole[cut])
    with pytest.raises(TextError, match="is damaged"):
        _read(path)
    path.write_bytes(b"not compressed at all")
    with pytest.raises(TextError, match="is damaged"):
        _read(path)


def test_what_is_no_parquet_is_said(tmp_path):
    (tmp_path / "a.parquet").write_text("One lamp.")
    for read in (_read, lambda path: read_records(str(path))):
        with pytest.raises(TextError, match=r"a\.parquet is no valid Parquet file"):
            read(tmp_path / "a.parquet")


def test_linked_folders_are_read_once_and_empty_paths_not_at_all(tmp_path):
    for name in ("films", "data"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text("A lamp.")
    (tmp_path / "data" / "linked").symlink_to(tmp_path / "films")
    (tmp_path / "films" / "back").symlink_to(tmp_path / "data")
    found = [Path(source.path).name for source in find_sources([str(tmp_path / "data")], {})]
    assert found == ["data.txt", "films.txt"]
    for empty in ("", " "):
        with pytest.raises(TextError, match="a path is empty"):
            find_sources([], {"films": [empty]})


def test_utf_16_without_its_mark_is_said(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("A lamp.".encode("utf-16-le"))
    with pytest.raises(TextError, match=r"not utf-16 text.*\n.*utf-16-le"):
        list(TextFile(str(path), encoding="utf-16").lines())


def test_long_windows_are_no_damage(tmp_path):
    packer = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    ).compressobj()
    text = "".join(f"Lamp {n} of many.\n\n" for n in range(1000))
    (tmp_path / "a.txt.zst").write_bytes(packer.compress(text.encode()) + packer.flush())
    lines = TextFile(str(tmp_path / "a.txt.zst")).lines()
    assert sum(line.startswith("Lamp") for line in lines) == 1000


def test_corpora_in_a_folder_are_no_raw_text(tmp_path):
    (tmp_path / "a.txt").write_text("One lamp.")
    for place, names in (("c.zicl", ["manifest.json", "sentences.arrow"]), ("d.zicl.partial", ["state.json"])):
        (tmp_path / place).mkdir()
        for name in names:
            (tmp_path / place / name).write_text("{}")
    assert [source.name for source in find_sources([tmp_path])] == ["a.txt"]


def test_endings_in_capitals_are_endings(tmp_path):
    (tmp_path / "A.TXT.GZ").write_bytes(gzip.compress(b"One lamp."))
    assert _read(tmp_path / "A.TXT.GZ") == ["One lamp."]
