"""Read a user's text files: format by name, decompression, decoding, and errors that name the line."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from zicl._util.process import require_extra
from zicl.exceptions import ConfigError, TextError, first_line

FORMATS = ("txt", "jsonl", "csv", "parquet")
_COMPRESSED = (".gz", ".zst")
_ALIASES = {"text": "txt", "json": "jsonl", "ndjson": "jsonl", "tsv": "csv", "pq": "parquet", "md": "txt"}
_BUFFER = 1 << 16
# Read compressed data in smaller pieces: each may expand thirty-thousandfold.
_COMPRESSED_BUFFER = 1 << 10
_PARQUET_ROWS = 256
# The variable that sets the length of the longest line or record, in millions of characters.
RECORD_LIMIT, _DEFAULT_LIMIT = "ZICL_MAX_RECORD_MB", 32


def detect_format(name: str) -> str | None:
    """Return the format that a file name implies, or None.

    >>> detect_format("reviews.jsonl.zst"), detect_format("photo.png")
    ('jsonl', None)
    """
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    packed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    if packed:
        suffixes.pop()
    last = suffixes[-1][1:] if suffixes else ""
    last = _ALIASES.get(last, last)
    return last if last in FORMATS and not (packed and last == "parquet") else None


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


def not_parquet(name: str, error: Exception) -> TextError:
    """Return the error for a damaged file, or one that is not Parquet."""
    return TextError(
        f"{name} is not a valid Parquet file: {first_line(error)}",
        hint="it may be truncated or misnamed: fetch it again",
    )


def parquet_rows(path: str, columns: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the values of every row of a Parquet file, all columns or some; few rows at a time.

    If one of ``columns`` is missing, rows have all: whoever needs it can say which there are.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, number, longest = display_name(path), 0, record_limit()
    try:
        with pq.ParquetFile(path) as file:
            check_names(file.schema_arrow.names, name)
            wanted = columns if set(columns or ()) <= set(file.schema_arrow.names) else None
            for batch in file.iter_batches(_PARQUET_ROWS, columns=wanted):
                if batch.nbytes > longest:
                    _check_lengths(batch, name, number, longest)
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except TextError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, KeyError) as error:
        raise not_parquet(name, error) from error


def _check_lengths(batch: Any, name: str, before: int, longest: int) -> None:
    for row in range(batch.num_rows):
        if batch.slice(row, 1).nbytes > longest:
            raise too_long(f"{name}, row {before + row + 1}")


def check_names(names: Sequence[str], file: str) -> None:
    """Check that no two columns have the same name: one of them would be lost."""
    counts = Counter(names)
    if twice := [name for name in names if counts[name] > 1]:
        raise TextError(
            f"{file}: {counts[twice[0]]} columns are called {twice[0]!r}",
            hint="give each column its own name, or remove all but one of them",
        )


@dataclass
class TextFile:
    """A text file, compressed or not, or standard input. ``consumed`` counts its bytes read, for a progress bar."""

    path: str
    encoding: str = "utf-8-sig"
    consumed: int = field(default=0, init=False)

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
        with self._open() as stream:
            read, longest = 0, record_limit()
            try:
                # At most so much of a line is in memory, whatever its file expands to.
                while line := stream.readline(longest + 1):
                    if len(line) > longest and not line.endswith("\n"):
                        raise too_long(f"{self.name}, line {read + 1}")
                    read += 1
                    yield line
            except UnicodeDecodeError as error:
                raise self._undecodable(error, read) from error
            except UnicodeError as error:
                # UTF-16 without its byte-order mark.
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
        marked = read == 0 and error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
        return TextError(
            f"{self.name}, line {line}: byte 0x{error.object[error.start]:02x} is not "
            f"{self.encoding.removesuffix('-sig')} text",
            hint=f"convert the file (iconv -f {'utf-16' if marked else 'latin1'} -t utf-8); "
            "for a corpus, zicl corpus build also takes --encoding",
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
            yield io.TextIOWrapper(counted, encoding=self.encoding, newline="")


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
