"""Records of every source as blocks of text: a block is what stands between blank lines.

Nothing is held but the current block, so a file of any size can be read.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

from zicl.corpus.sources import Source
from zicl.exceptions import DownloadError, ModelError, TextError
from zicl.inputs.tables import table_rows

END_OF_TEXT = "<|endoftext|>"
_BREAK = re.compile(r"\n[^\S\n]*\n\s*|<\|endoftext\|>")
# A .txt file without blank lines is still cut somewhere: at the first line end after this many characters.
_LONGEST_BLOCK = 1 << 20
_BUFFER = 1 << 16
# Of compressed data less at once: it may become a thousand times as much.
_PACKED = 1 << 12


class Block(NamedTuple):
    """A piece of text. ``record`` counts documents within the source.

    In a .txt file every block is a document of its own, and ``group`` counts what they belong to: the
    file, or its part up to ``<|endoftext|>``. In other formats a record is a document and its own group.
    """

    record: int
    text: str
    group: int


@dataclass
class Reader:
    """Reads one source. ``consumed`` is how many of its bytes are read, for a progress bar."""

    source: Source
    text_column: str = "text"
    lines: bool = False
    encoding: str = "utf-8-sig"
    consumed: int = field(default=0, init=False)

    @property
    def grouped(self) -> bool:
        """Whether blocks are documents of their own that belong to something larger."""
        return self.source.format == "txt" and not self.lines

    def blocks(self) -> Iterator[Block]:
        """All blocks in order."""
        if self.grouped:
            yield from self._txt_blocks()
            return
        for record, text in enumerate(self.records()):
            for piece in _BREAK.split(text):
                if piece.strip():
                    yield Block(record, piece, record)

    def records(self) -> Iterator[str]:
        """The text of every record of a format that has records."""
        reader = {
            "txt": self._txt_lines, "jsonl": self._jsonl, "csv": self._csv, "parquet": self._parquet, "hf": self._hf,
        }[self.source.format]  # fmt: skip
        for number, text in enumerate(reader(), start=1):
            if not isinstance(text, str):
                raise TextError(
                    f"{self.source.name}, record {number}: {self.text_column!r} holds {type(text).__name__}, not text",
                    hint="name the column that holds the text with --text-column",
                )
            if "\0" in text:
                raise self._nul(number)
            if not _encodable(text):
                raise TextError(
                    f"{self.source.name}, record {number}: the text holds a broken character (a lone surrogate)",
                    hint="the file was not written as UTF-8: write it again",
                )
            yield text

    # -- formats ----------------------------------------------------------------------------------

    def _txt_blocks(self) -> Iterator[Block]:
        record, group, lines, size = 0, 0, list[str](), 0
        for number, raw in enumerate(self.lines_of_text(), start=1):
            if "\0" in raw:
                raise self._nul(number)
            pieces = raw.split(END_OF_TEXT)
            for index, piece in enumerate(pieces):
                if piece.strip():
                    lines.append(piece)
                    size += len(piece)
                ends_record = index < len(pieces) - 1
                if lines and (ends_record or not piece.strip() or size >= _LONGEST_BLOCK):
                    yield Block(record, "".join(lines), group)
                    record, lines, size = record + 1, [], 0
                group += ends_record
        if lines:
            yield Block(record, "".join(lines), group)

    def _txt_lines(self) -> Iterator[str]:
        return (line for line in self.lines_of_text() if line.strip())

    def lines_of_text(self) -> Iterator[str]:
        """The lines of a text file, decoded."""
        with self._open() as stream:
            read = 0
            try:
                for line in stream:
                    read += 1
                    yield line
            except UnicodeDecodeError as error:
                raise self._undecoded(error, read) from error
            except UnicodeError as error:
                # Of UTF-16 without its mark.
                raise TextError(
                    f"{self.source.name}, after line {read}: it is not {self.encoding} text ({error})",
                    hint="convert it to UTF-8, or build the corpus with --encoding utf-16-le or utf-16-be, perhaps",
                ) from error
            except (EOFError, gzip.BadGzipFile, zlib.error, _FrameError) as error:
                raise TextError(
                    f"{self.source.name} is damaged after line {read}: {error}", hint="fetch or compress it again"
                ) from error

    def _jsonl(self) -> Iterator[str]:
        for number, line in enumerate(self.lines_of_text(), start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                raise TextError(
                    f"{self.source.name}, line {number}: not JSON ({error.msg})",
                    hint="expected one JSON object a line",
                ) from error
            yield value if isinstance(value, str) else self._pick(value, number)

    def _csv(self) -> Iterator[str]:
        for number, row in enumerate(table_rows(self.lines_of_text(), self.source.path), start=1):
            yield self._pick(row, number)

    def _parquet(self) -> Iterator[str]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.source.path) as file:
                names = file.schema_arrow.names
                if self.text_column not in names:
                    raise self._no_column(names)
                for batch in file.iter_batches(columns=[self.text_column]):
                    yield from batch.column(0).to_pylist()
        except pa.ArrowInvalid as error:
            raise not_parquet(self.source.name, error) from error

    def _hf(self) -> Iterator[str]:
        try:
            import datasets
        except ImportError as error:
            raise ModelError(
                "reading Hugging Face data sets needs an extra", hint='pip install "zicl[data]"'
            ) from error
        name, _, split = self.source.path.removeprefix("hf:").partition(":")
        try:
            rows = datasets.load_dataset(name, split=split or "train", streaming=True)
            # A stream: it may break at any row.
            for number, row in enumerate(rows, start=1):
                yield self._pick(row, number)
        except TextError:
            raise
        except (OSError, ValueError) as error:
            raise DownloadError(
                f"the data set {name} ({split or 'train'}) could not be read: {error}",
                hint="expected hf:OWNER/NAME or hf:OWNER/NAME:SPLIT, as the hub has them",
            ) from error

    def _pick(self, row: Any, number: int) -> str:
        if not isinstance(row, dict) or self.text_column not in row:
            raise self._no_column(list(row) if isinstance(row, dict) else [], number)
        value: str = row[self.text_column]
        return value

    # -- errors and streams -----------------------------------------------------------------------

    def _no_column(self, names: list[str], number: int | None = None) -> TextError:
        where = f", record {number}" if number else ""
        return TextError(
            f"{self.source.name}{where}: there is no column {self.text_column!r}",
            hint=f"name the text's column with --text-column; there are: {', '.join(map(str, names)) or 'none'}",
        )

    def _undecoded(self, error: UnicodeDecodeError, read: int) -> TextError:
        # What is decoded at once are several lines, of which none was given yet.
        line = read + 1 + error.object[: error.start].count(b"\n")
        marked = read == 0 and error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
        return TextError(
            f"{self.source.name}, line {line}: byte 0x{error.object[error.start]:02x} is not "
            f"{self.encoding.removesuffix('-sig')} text",
            hint=f"convert the file (iconv -f {'utf-16' if marked else 'latin1'} -t utf-8); "
            "for a corpus, zicl corpus build also takes --encoding",
        )

    def _nul(self, number: int) -> TextError:
        return TextError(
            f"{self.source.name}, record {number}: the text holds a NUL byte",
            hint="the file may be binary or UTF-16: convert it to UTF-8, or build the corpus with --encoding",
        )

    @contextmanager
    def _open(self) -> Iterator[TextIO]:
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise TextError(
                f"unknown encoding {self.encoding!r}", hint="for example utf-8, utf-16 or latin-1"
            ) from error
        if self.source.path == "-":
            yield io.TextIOWrapper(sys.stdin.buffer, encoding=self.encoding)
            return
        if not os.access(self.source.path, os.R_OK):
            raise TextError(f"{self.source.name} cannot be read", hint="check that it is there, and its permissions")
        with Path(self.source.path).open("rb") as raw, _decompressed(raw, self.source.path) as stream:
            counted = io.BufferedReader(_Counting(stream, raw, self), _BUFFER)
            yield io.TextIOWrapper(counted, encoding=self.encoding, newline="")


def not_parquet(name: str, error: Exception) -> TextError:
    """The error for a file that is damaged, or no Parquet at all."""
    return TextError(f"{name} is no whole Parquet file: {error}", hint="it may be cut or named wrongly: fetch it again")


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class _Counting(io.RawIOBase):
    """Passes bytes through and tells the reader how far the file underneath is."""

    def __init__(self, stream: BinaryIO, raw: BinaryIO, reader: Reader) -> None:
        self._stream, self._raw, self._reader = stream, raw, reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._reader.consumed = self._raw.tell()
        return len(data)


@contextmanager
def _decompressed(raw: BinaryIO, path: str) -> Iterator[BinaryIO]:
    if path.lower().endswith(".gz"):
        with gzip.open(raw) as stream:
            yield cast(BinaryIO, stream)
    elif path.lower().endswith(".zst"):
        yield cast(BinaryIO, _Frames(raw))
    else:
        yield raw


class _FrameError(Exception):
    """Compressed data that are none, or end too early."""


class _Frames:
    """Zstandard frames one after the other. The library's own reader takes a file that ends inside one for whole."""

    def __init__(self, raw: BinaryIO) -> None:
        import zstandard

        # Large dumps are packed with windows (--long) that are refused by default, as if they were damaged.
        reader = zstandard.ZstdDecompressor(max_window_size=1 << zstandard.WINDOWLOG_MAX)
        self._raw, self._new, self._error = raw, reader.decompressobj, zstandard.ZstdError
        self._frame: Any = None
        self._given, self._ready = b"", io.BytesIO()

    def read(self, size: int) -> bytes:
        while not (found := self._ready.read(size)):
            given = self._given or self._raw.read(_PACKED)
            if not given:
                if self._frame is not None:
                    raise _FrameError("it ends before its last frame does")
                return b""
            frame = self._frame or self._new()
            try:
                self._ready = io.BytesIO(frame.decompress(given))
            except self._error as error:
                raise _FrameError(str(error)) from error
            self._given = frame.unused_data if frame.eof else b""
            self._frame = None if frame.eof else frame
        return found
