"""Read a user's text files: format by name, decompression, decoding, and errors that name the line."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from zicl._util.process import require_extra
from zicl._util.registry import nearest_name
from zicl.exceptions import ConfigError, TextError, UsageError

FORMATS = ("txt", "jsonl", "csv", "parquet", "arrow", "xlsx")
# Those that are read line by line, and may be compressed.
_LINES = ("txt", "jsonl", "csv")
_COMPRESSED = (".gz", ".zst")
_ALIASES = {
    "text": "txt", "md": "txt", "json": "jsonl", "ndjson": "jsonl", "tsv": "csv",
    "pq": "parquet", "feather": "arrow", "ipc": "arrow", "xlsm": "xlsx",
}  # fmt: skip
# Workbooks of formats that are not read.
_OTHER_WORKBOOKS = ("xls", "xlsb", "ods", "numbers")
# A sheet of a workbook; these characters are in the name of none.
_SHEET = re.compile(r"(.*\.xls[xm])#([^\\/?*:\[\]]+)", re.IGNORECASE | re.DOTALL)
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BUFFER = 1 << 16
# So many bytes show whether a text is UTF-16.
_BEGINNING = 1 << 10
# Read compressed data in smaller pieces: each may expand thirty-thousandfold.
_COMPRESSED_BUFFER = 1 << 10
# The variable that sets the length of the longest line or record, in millions of characters.
RECORD_LIMIT, _DEFAULT_LIMIT = "ZICL_MAX_RECORD_MB", 32


def detect_format(name: str) -> str | None:
    """Return the format that a file name implies, or None.

    >>> detect_format("reviews.jsonl.zst"), detect_format("photo.png")
    ('jsonl', None)
    """
    suffixes = [suffix.lower() for suffix in Path(split_sheet(name)[0]).suffixes]
    packed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    if packed:
        suffixes.pop()
    last = suffixes[-1][1:] if suffixes else ""
    last = _ALIASES.get(last, last)
    return last if last in (_LINES if packed else FORMATS) else None


def split_sheet(name: str) -> tuple[str, str | None]:
    """Return the name of a file and that of the sheet behind it, if one is named.

    >>> split_sheet("data/book.xlsx#May 2024"), split_sheet("notes#1.csv")
    (('data/book.xlsx', 'May 2024'), ('notes#1.csv', None))
    """
    found = _SHEET.fullmatch(name)
    return (found[1], found[2]) if found else (name, None)


def check_not_read(path: Path, inputs: Iterable[Path]) -> None:
    """Check that a file to write is none of the ``inputs``, of which some may name a sheet of it."""
    files = (Path(split_sheet(str(each))[0]) for each in inputs)
    if path.exists() and any(each.exists() and path.samefile(each) for each in files):
        raise UsageError(f"{path} is read from, and cannot be written to as well", hint="choose another -o")


def check_readable(path: str) -> str:
    """Return the format of a file of rows that is there, or raise an error that says what can be read."""
    file, _ = split_sheet(path)
    if os.path.isdir(file):
        raise TextError(f"{file} is a folder, and a file of texts was expected", hint="name a file in it")
    if not os.path.isfile(file):
        raise TextError(f"there is no file {file}", hint="check the path")
    kind = detect_format(path)
    if kind is None:
        raise unknown_format(path)
    if kind == "xlsx":
        require_extra("excel", "reading .xlsx files", "openpyxl")
    return kind


def unknown_format(path: str, more: str = "") -> TextError:
    """Return the error for a file that cannot be read; ``more`` is what else can be done about it."""
    expected = f"expected {', '.join('.' + name for name in FORMATS[:-1])} or .{FORMATS[-1]}{more}"
    other = Path(path).suffix.lower().removeprefix(".") in _OTHER_WORKBOOKS
    return TextError(
        f"{path}: a file of this kind cannot be read",
        hint="open it in the program that wrote it, and save it as .xlsx or .csv" if other else expected,
    )


def display_name(path: str) -> str:
    """Return a name to show and to store: never a folder of this machine.

    >>> display_name("data/reviews.csv"), display_name("-")
    ('reviews.csv', 'standard input')
    """
    if path == "-":
        return "standard input"
    return path if path.startswith("hf:") else Path(path).name


def record_limit() -> int:
    """Return how many characters a line or a record may have: a longer one is a damaged file, or an attack."""
    given = os.environ.get(RECORD_LIMIT, "")
    if given and not (given.isdecimal() and 0 < int(given) <= 1024):
        raise ConfigError(f"{RECORD_LIMIT} is {given!r}", hint="expected a number of megabytes, from 1 to 1024")
    return int(given or _DEFAULT_LIMIT) << 20


def too_long(where: str) -> TextError:
    """Return the error for a line or a record that is longer than the limit."""
    return TextError(
        f"{where}: it has more than {record_limit() >> 20} million characters, the limit of a record",
        hint=f"expected one text per record: check that the file is whole, or raise the limit: {RECORD_LIMIT}=256",
    )


def check_names(names: Sequence[str], file: str) -> None:
    """Check that no two columns have the same name: one of them would be lost."""
    counts = Counter(names)
    if twice := [name for name in names if counts[name] > 1]:
        raise TextError(
            f"{file}: {counts[twice[0]]} columns are called {twice[0]!r}",
            hint="give each column its own name, or remove all but one of them",
        )


def begins_with_mark(path: str) -> bool:
    """Return whether a file begins with a byte-order mark, as spreadsheets write it and need it."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as stream:
        return stream.read(3).startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def no_column(message: str, name: str, columns: Iterable[object], fix: str = "") -> TextError:
    """Return the error for a column that is not there: its hint has the nearest name, how to ``fix`` it, and all names.

    >>> print(no_column("a.csv: there is no column 'revew'", "revew", ["id", "review"], "name it with --text-column"))
    a.csv: there is no column 'revew'
      → did you mean 'review'? name it with --text-column; there are: id, review
    """
    names = [str(each) for each in columns]
    there = f"there are: {', '.join(names) or 'none'}"
    return TextError(message, hint=nearest_name(name, names) + (f"{fix}; {there}" if fix else there))


@dataclass
class TextFile:
    """A text file, compressed or not, or standard input. ``consumed`` counts its bytes read, for a progress bar.

    A file that begins with the byte-order mark of UTF-16 is read as such: no UTF-8 text begins so.
    """

    path: str
    encoding: str = "utf-8-sig"
    consumed: int = field(default=0, init=False)
    is_utf16: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        # A byte-order mark would become a part of the first column's name.
        if self.encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            self.encoding = "utf-8-sig"

    @property
    def name(self) -> str:
        """The name to show."""
        return display_name(self.path)

    def lines(self) -> Iterator[str]:
        """Yield the decoded lines."""
        read, longest = 0, record_limit()
        try:
            with self._open() as stream:
                # At most so much of a line is in memory, whatever its file expands to.
                while line := stream.readline(longest + 1):
                    if len(line) > longest and not line.endswith("\n"):
                        raise too_long(f"{self.name}, line {read + 1}")
                    read += 1
                    yield line
        except UnicodeError as error:
            # UTF-16 without its byte-order mark is an error of decoding only from Python 3.13 on.
            if isinstance(error, UnicodeDecodeError) and "BOM" not in error.reason:
                raise self._undecodable(error, read) from error
            raise TextError(
                f"{self.name}, after line {read}: it is not {self.encoding} text ({error})",
                hint="convert it to UTF-8, or build the corpus with --encoding utf-16-le or utf-16-be, perhaps",
            ) from error
        except (EOFError, gzip.BadGzipFile, zlib.error, _FrameError) as error:
            raise TextError(
                f"{self.name} is damaged after line {read}: {error}", hint="fetch or compress it again"
            ) from error

    def _undecodable(self, error: UnicodeDecodeError, read: int) -> TextError:
        # Several lines are decoded at once, none of which was yielded yet.
        line = read + 1 + error.object[: error.start].count(b"\n")
        return TextError(
            f"{self.name}, line {line}: byte 0x{error.object[error.start]:02x} is not "
            f"{'utf-16' if self.is_utf16 else self.encoding.removesuffix('-sig')} text",
            hint=self._conversion("cp1252"),
        )

    def _conversion(self, encoding: str) -> str:
        return (
            f"save it as UTF-8 (in Excel: CSV UTF-8), or convert it: iconv -f {encoding} -t utf-8 {self.name} > new"
            f"{''.join(Path(self.name).suffixes[-1:])}; for a corpus, zicl corpus build also takes --encoding"
        )

    @contextmanager
    def _open(self) -> Iterator[TextIO]:
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
        except (LookupError, ValueError) as error:
            raise TextError(
                f"unknown encoding {self.encoding!r}", hint="for example utf-8, utf-16 or latin-1"
            ) from error
        if self.path == "-":
            yield io.TextIOWrapper(sys.stdin.buffer, encoding=self.encoding)
            return
        if not os.access(self.path, os.R_OK):
            raise TextError(f"{self.name} cannot be read", hint="check that it is there, and its permissions")
        with Path(self.path).open("rb") as raw, _decompressed(raw, self.path) as stream:
            counted = io.BufferedReader(_CountingStream(stream, raw, self), _BUFFER)
            beginning = counted.peek(2)[:_BEGINNING] if self.encoding == "utf-8-sig" else b""
            self.is_utf16 = beginning[:2] in _UTF16_MARKS
            if not self.is_utf16 and (guess := _unmarked_utf16(beginning)):
                raise TextError(
                    f"{self.name} is UTF-16 text without a byte-order mark, and UTF-8 was expected",
                    hint=self._conversion(guess),
                )
            yield io.TextIOWrapper(counted, encoding="utf-16" if self.is_utf16 else self.encoding, newline="")


def _unmarked_utf16(beginning: bytes) -> str | None:
    r"""Return the encoding of UTF-16 text without its mark: one of the two bytes of a common character is zero.

    >>> _unmarked_utf16(b"i\0d\0,\0"), _unmarked_utf16(b"\0i\0d"), _unmarked_utf16(b"id,text")
    ('utf-16-le', 'utf-16-be', None)
    """
    first, second = beginning[::2].count(0), beginning[1::2].count(0)
    # Few characters have the other one; bytes that are no text have zeros anywhere.
    if max(first, second) < 2 or max(first, second) < 4 * min(first, second):
        return None
    return "utf-16-le" if second > first else "utf-16-be"


class _CountingStream(io.RawIOBase):
    """Pass bytes through and record how far the underlying file was read."""

    def __init__(self, stream: BinaryIO, raw: BinaryIO, file: TextFile) -> None:
        self._stream, self._raw, self._file = stream, raw, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._file.consumed = self._raw.tell()
        return len(data)


@contextmanager
def _decompressed(raw: BinaryIO, path: str) -> Iterator[BinaryIO]:
    if path.lower().endswith(".gz"):
        with gzip.open(raw) as stream:
            yield cast(BinaryIO, stream)
    elif path.lower().endswith(".zst"):
        yield cast(BinaryIO, _ZstdFrames(raw))
    else:
        yield raw


class _FrameError(Exception):
    """Compressed data that is invalid or ends too early."""


class _ZstdFrames:
    """Read consecutive Zstandard frames. The library's reader accepts a file that ends inside a frame."""

    def __init__(self, raw: BinaryIO) -> None:
        require_extra("zst", "reading .zst files", "zstandard")
        import zstandard

        # Large dumps are packed with windows (--long) that the library refuses by default, as if they were damaged.
        reader = zstandard.ZstdDecompressor(max_window_size=1 << zstandard.WINDOWLOG_MAX)
        self._raw, self._new_frame, self._error = raw, reader.decompressobj, zstandard.ZstdError
        self._frame: Any = None
        self._pending, self._ready = b"", io.BytesIO()

    def read(self, size: int) -> bytes:
        while not (data := self._ready.read(size)):
            pending = self._pending or self._raw.read(_COMPRESSED_BUFFER)
            if not pending:
                if self._frame is not None:
                    raise _FrameError("it ends before its last frame does")
                return b""
            frame = self._frame or self._new_frame()
            try:
                self._ready = io.BytesIO(frame.decompress(pending))
            except self._error as error:
                raise _FrameError(str(error)) from error
            self._pending = frame.unused_data if frame.eof else b""
            self._frame = None if frame.eof else frame
        return data
