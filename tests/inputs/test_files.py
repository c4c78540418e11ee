"""Text files: compression, damage and encodings."""

import gzip

import pytest
import zstandard

from zicl.exceptions import TextError
from zicl.inputs.files import TextFile, detect_format


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


def test_the_hint_names_the_likely_encoding(tmp_path):
    path = tmp_path / "a.txt"
    for encoding in ("latin1", "utf-16"):
        path.write_text("fine\ncaf\u00e9\n", encoding=encoding)
        with pytest.raises(TextError, match="is not utf-8 text") as error:
            lines(path)
        assert f"iconv -f {encoding} " in error.value.hint
