"""Stream the text of a source, of any format and size, as blocks: the text between blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from zicl._util.process import require_extra
from zicl.corpus.sources import Source
from zicl.exceptions import DownloadError, TextError
from zicl.inputs.arrow import arrow_rows
from zicl.inputs.excel import excel_rows
from zicl.inputs.files import TextFile, no_column
from zicl.inputs.tables import csv_rows, json_lines
from zicl.inputs.texts import cell_text

END_OF_TEXT = "<|endoftext|>"
_BREAK = re.compile(r"\n[^\S\n]*\n\s*|<\|endoftext\|>")
# A .txt file without blank lines is split at the first line end after this many characters.
_LONGEST_BLOCK = 1 << 20


def parse_hub(path: str) -> tuple[str, str | None, str]:
    """Return the name, the configuration and the split of a data set.

    >>> parse_hub("hf:owner/name"), parse_hub("hf:owner/name:en:test")
    (('owner/name', None, 'train'), ('owner/name', 'en', 'test'))
    """
    name, *rest = path.removeprefix("hf:").split(":")
    configuration = rest[0] if len(rest) > 1 else None
    return name, configuration or None, (rest[-1] if rest else "") or "train"


class TextBlock(NamedTuple):
    """A piece of text; ``record`` is the number of its document in the source.

    In a .txt file every block is a document, and ``group`` numbers the parts of the file that ``<|endoftext|>``
    separates. In other formats a record is a document, and the only one of its group.
    """

    record: int
    text: str
    group: int


class SourceReader:
    """Read one source; ``lines`` makes every line of a .txt file a record."""

    def __init__(
        self, source: Source, text_column: str = "text", lines: bool = False, encoding: str = "utf-8-sig"
    ) -> None:
        self.source, self.text_column, self.lines = source, text_column, lines
        self._file = TextFile(source.path, encoding)

    @property
    def consumed(self) -> int:
        """The number of bytes of the file that were read, for a progress bar."""
        return self._file.consumed

    @property
    def grouped(self) -> bool:
        """Whether documents form groups (see ``TextBlock``)."""
        return self.source.format == "txt" and not self.lines

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all blocks in order."""
        if self.grouped:
            yield from self._txt_blocks()
            return
        for record, text in enumerate(self.records()):
            for piece in _BREAK.split(text):
                if piece.strip():
                    yield TextBlock(record, piece, record)

    def records(self) -> Iterator[str]:
        """Yield the text of every record."""
        read = {
            "txt": self._txt_lines, "jsonl": self._jsonl, "csv": self._csv, "parquet": self._arrow,
            "arrow": self._arrow, "xlsx": self._excel, "hf": self._hf,
        }[self.source.format]  # fmt: skip
        for number, text in enumerate(read(), start=1):
            if not isinstance(text, str):
                raise TextError(
                    f"{self.source.name}, record {number}: {self.text_column!r} holds {type(text).__name__}, not text",
                    hint="name the column that holds the text with --text-column",
                )
            if "\0" in text:
                raise self._nul(number)
            try:
                text.encode("utf-8")
            except UnicodeEncodeError as error:
                raise TextError(
                    f"{self.source.name}, record {number}: the text holds a broken character (a lone surrogate)",
                    hint="the file was not written as UTF-8: write it again",
                ) from error
            yield text

    def _txt_blocks(self) -> Iterator[TextBlock]:
        record, group, lines, size = 0, 0, list[str](), 0
        for number, raw in enumerate(self._file.lines(), start=1):
            if "\0" in raw:
                raise self._nul(number)
            pieces = raw.split(END_OF_TEXT)
            for index, piece in enumerate(pieces):
                if piece.strip():
                    lines.append(piece)
                    size += len(piece)
                ends_record = index < len(pieces) - 1
                if lines and (ends_record or not piece.strip() or size >= _LONGEST_BLOCK):
                    yield TextBlock(record, "".join(lines), group)
                    record, lines, size = record + 1, [], 0
                group += ends_record
        if lines:
            yield TextBlock(record, "".join(lines), group)

    def _txt_lines(self) -> Iterator[str]:
        return (line for line in self._file.lines() if line.strip())

    def _jsonl(self) -> Iterator[str]:
        for number, value in json_lines(self._file):
            yield value if isinstance(value, str) else self._pick(value, number)

    def _csv(self) -> Iterator[str]:
        for number, row in enumerate(csv_rows(self._file.lines(), self.source.path), start=1):
            yield self._pick(row, number)

    def _arrow(self) -> Iterator[str]:
        for number, row in arrow_rows(self.source.path, self.source.format, [self.text_column]):
            yield self._pick(row, number)

    def _excel(self) -> Iterator[str]:
        for number, row in enumerate(excel_rows(self.source.path), start=1):
            yield cell_text(self._pick(row, number))

    def _hf(self) -> Iterator[str]:
        require_extra("data", "reading Hugging Face data sets", "datasets")
        import datasets

        name, configuration, split = parse_hub(self.source.path)
        try:
            rows = datasets.load_dataset(name, configuration, split=split, streaming=True)
            # Rows are streamed: any of them may fail.
            for number, row in enumerate(rows, start=1):
                yield self._pick(row, number)
        except TextError:
            raise
        except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
            raise DownloadError(
                f"the data set {name} ({split}) could not be read: {error}",
                hint="expected hf:OWNER/NAME, with :SPLIT or :CONFIGURATION:SPLIT behind it, as the hub has them",
            ) from error

    def _pick(self, row: Any, number: int) -> str:
        if not isinstance(row, dict) or self.text_column not in row:
            raise self._no_column(list(row) if isinstance(row, dict) else [], number)
        text: str = row[self.text_column]
        return text

    def _no_column(self, names: list[str], number: int | None = None) -> TextError:
        where = f", record {number}" if number else ""
        message = f"{self.source.name}{where}: there is no column {self.text_column!r}"
        return no_column(message, self.text_column, names, "name the column of the text with --text-column")

    def _nul(self, number: int) -> TextError:
        return TextError(
            f"{self.source.name}, record {number}: the text holds a NUL byte",
            hint="the file may be binary or UTF-16: convert it to UTF-8, or build the corpus with --encoding",
        )
