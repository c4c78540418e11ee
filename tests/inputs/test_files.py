"""Text files: compression, damage and encodings."""

import gzip
import re
import shutil
import subprocess

import pytest
import zstandard

from zicl.exceptions import TextError
from zicl.inputs.files import TextFile, detect_format
from zicl.inputs.tables import read_records


def lines(path):
    return [line.strip() for line in TextFile(str(path)).lines() if line.strip()]


@pytest.mark.parametrize("cut", [slice(-5), slice(40)])
def test_a_truncated_file_is_damaged(tmp_path, cut):
    path, line = tmp_path / "a.txt.zst", b"One lamp, number %d.\n\n"
    complete = b"".join(zstandard.compress(b"".join(line % n for n in range(part, part + 999))) for part in (0, 999))
    path.write_bytes(complete)
    assert len(lines(path)) == 2 * 999
    path.write_bytes(complete[cut])
    with pytest.raises(TextError, match="is damaged"):
        lines(path)
    path.write_bytes(b"not compressed at all")
    with pytest.raises(TextError, match="is damaged"):
        lines(path)


def test_utf_16_without_a_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("A lamp.".encode("utf-16-le"))
    with pytest.raises(TextError, match=r"not utf-16 text.*\n.*utf-16-le"):
        list(TextFile(str(path), encoding="utf-16").lines())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl", "a.csv.gz"])
def test_utf_16_without_its_mark_is_named(tmp_path, name, encoding):
    path, content = tmp_path / name, "id,text\r\n1,冬の一港\r\n".encode(encoding)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(TextError, match="UTF-16 text without a byte-order mark") as caught:
        read_records(str(path))
    assert f"iconv -f {encoding} -t utf-8 {name}" in caught.value.hint


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "texts.csv").mkdir()
    with pytest.raises(TextError, match=r"texts.csv is a folder, and a file of texts was expected"):
        read_records(str(tmp_path / "texts.csv"))


def test_long_zstandard_windows_are_read(tmp_path):
    packer = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    ).compressobj()
    text = "".join(f"Lamp {n} of many.\n\n" for n in range(1000))
    (tmp_path / "a.txt.zst").write_bytes(packer.compress(text.encode()) + packer.flush())
    assert len(lines(tmp_path / "a.txt.zst")) == 1000


def test_suffixes_in_capitals(tmp_path):
    assert detect_format("A.TXT.GZ") == "txt"
    (tmp_path / "A.TXT.GZ").write_bytes(gzip.compress(b"One lamp."))
    assert lines(tmp_path / "A.TXT.GZ") == ["One lamp."]


def test_a_file_of_another_code_page_is_refused_and_the_fix_reads_it(tmp_path):
    path, text = tmp_path / "a.csv", "fine\ncaf\u00e9 \u20ac 3 \u2013 \u201cgood\u201d\n"
    path.write_text(text, encoding="cp1252")
    with pytest.raises(TextError, match="line 2: byte 0xe9 is not utf-8 text") as error:
        lines(path)
    [command] = re.findall(r"iconv -f cp1252 -t utf-8 a.csv > new.csv", error.value.hint)
    if shutil.which("iconv"):
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
        assert "".join(TextFile(str(tmp_path / "new.csv")).lines()) == text


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_its_mark_is_read(tmp_path, name, encoding):
    data = "\ufeffOne lamp.\nZw\u00f6lf\n".encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert lines(tmp_path / name) == ["One lamp.", "Zw\u00f6lf"]
    (tmp_path / name).write_bytes(gzip.compress(data[:-1]) if name.endswith("gz") else data[:-1])
    with pytest.raises(TextError, match="is not utf-16 text"):
        lines(tmp_path / name)
