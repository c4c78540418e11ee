"""Write classified rows to a file in chunks, so that a killed run resumes where it stopped.

Nothing is written before the first chunk: a run that fails before leaves nothing behind. Rows are appended to a .csv or
.jsonl file. For .xlsx and .parquet, which cannot be appended to, they are in ``.NAME.rows.jsonl`` beside it, and the
file is made of them when all are there.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from zicl._util.failures import storage_errors
from zicl._util.files import (
    atomic_write,
    check_place,
    exists_error,
    file_hash,
    read_json,
    real_path,
    text_hash,
    write_json,
)
from zicl._util.locks import locked
from zicl._util.process import require_extra
from zicl._util.schema import Count, Entries, Sha256, Strict, check_schema
from zicl.exceptions import StorageError, TextError, UsageError
from zicl.inputs.arrow import check_parquet_fits, write_parquet
from zicl.inputs.excel import (
    check_workbook_columns,
    check_workbook_fits,
    pack_dates,
    unpack_dates,
    write_workbook,
)
from zicl.inputs.files import check_not_read, split_sheet
from zicl.inputs.tables import InputRow

_APPENDED, _MADE_OF_ROWS = (".csv", ".jsonl"), (".xlsx", ".parquet")
# Without it spreadsheets take UTF-8 for another encoding; other programs take it for a part of the first column's name.
BYTE_ORDER_MARK = "\ufeff"
_NEW = "pass --overwrite, or choose another -o: which rows are complete is not known without it"


def check_output_path(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Check that rows can be written to a file of this format and place, which is none of the ``inputs``."""
    check_place(path)
    if path.suffix not in (*_APPENDED, *_MADE_OF_ROWS):
        raise UsageError(
            f"{path}: results are written as .csv, .jsonl, .xlsx or .parquet", hint="end its name in one of them"
        )
    if path.suffix == ".xlsx":
        require_extra("excel", "writing .xlsx files", "openpyxl")
    if path.is_dir():
        raise UsageError(f"{path} is a folder, and a file was expected", hint="name a file in it")
    if path.exists() and not path.is_file():
        raise UsageError(
            f"{path} is a device or a pipe, and a file was expected", hint="--json writes to standard output"
        )
    check_not_read(path, inputs)


def check_resumable(path: Path) -> None:
    """Check that a file does not exist, or was written by zicl and is there with its rows: nothing else is replaced."""
    rows, note = rows_path(path), metadata_path(path)
    there = [each for each in (path, rows) if each.exists()]
    if not there:
        return
    missing = [each.name for each in (rows, note) if not each.is_file()]
    if missing:
        raise exists_error(there[0], f"one that zicl wrote, with {missing[0]} beside it,", overwrite=True)
    if not path.exists() and _read_note(path).finished:
        # The rows are those of a file that was moved away: they would be in the next one, too.
        raise StorageError(
            f"{path} was written and is gone, and {rows.name} still has its rows",
            hint="put it back to add rows to it, choose another -o, or pass --overwrite to start anew",
        )


def _other_settings(path: Path, changed: list[str]) -> UsageError:
    hint = "use the same ones, choose another -o, or pass --overwrite"
    if changed == ["fitted"]:
        # The settings are the same: the texts that were learned from are not.
        hint += "; to label new rows as the old ones, save the classifier (--save) and use it (--with)"
    return UsageError(f"{path} was begun with other settings ({', '.join(changed)})", hint=hint)


def _hash_written(path: Path, note: Note) -> Any:
    """Return the hash of the written chunks, if they are as they were: a file that a spreadsheet saved is not."""
    rows, size, digest = rows_path(path), note.bytes, hashlib.sha256()
    if rows.stat().st_size < size:
        raise StorageError(f"{rows} is shorter than when zicl last wrote to it", hint="restore it, or pass --overwrite")
    with rows.open("rb") as stream:
        while piece := stream.read(min(size, 1 << 20)):
            digest.update(piece)
            size -= len(piece)
    is_made = rows != path and path.exists()
    if digest.hexdigest() != note.sha256 or (is_made and file_hash(path) not in note.made):
        raise StorageError(
            f"{path} was changed since zicl last wrote to it",
            hint="write the new rows to another -o, restore the file, or pass --overwrite",
        )
    return digest


def check_rows_fit(path: Path | None, rows: Sequence[InputRow]) -> None:
    """Check that an output can hold the columns of the input, before others are computed for hours.

    ``path`` is None for JSON on standard output.
    """
    if binary := next((name for row in rows for name, value in row.columns.items() if _holds_bytes(value)), None):
        raise TextError(
            f"the column {binary!r} holds bytes, and is to be written as text",
            hint="leave it out of the input, or make it a column of strings there",
        )
    if path is None or path.suffix not in _MADE_OF_ROWS:
        return
    # As they come from the file of rows: dates are text there, and null is what is no number.
    columns = [json.loads(to_json(row.columns)) for row in rows]
    if path.suffix == ".xlsx":
        check_workbook_fits(columns, path)
    else:
        check_parquet_fits(columns)


def _holds_bytes(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_bytes, value.values()))
    return any(map(_holds_bytes, value)) if isinstance(value, list | tuple) else isinstance(value, bytes)


def rows_path(path: Path) -> Path:
    """Return the file that rows are appended to: the output itself, or one beside it that the output is made of."""
    return path if path.suffix in _APPENDED else path.with_name(f".{path.name}.rows.jsonl")


def metadata_path(path: Path) -> Path:
    """Return the file beside an output that records how it was written, and the size and hash of its chunks."""
    return path.with_name(f".{split_sheet(path.name)[0]}.zicl.json")


def output_lock(path: Path | None) -> AbstractContextManager[None]:
    """Lock an output file, if there is one: two processes would write the same rows."""
    if path is None:
        return nullcontext()
    return locked(path.with_name(f".{path.name}.lock"), f"{path} is being written by another process")


class Note(Strict):
    """What the file beside an output holds."""

    settings: dict[str, Any]
    id: str
    bytes: Count
    sha256: Sha256
    # Of a workbook or a Parquet file: its hashes, and how many bytes of rows it was made of.
    made: list[str] = Field(default_factory=list)
    made_of: Count = 0
    # Whether it was put there: a run may be killed before.
    finished: bool = False


class ClassifySettings(Strict):
    """What the settings of ``zicl classify`` hold that other commands read."""

    columns: Annotated[list[str | None], Field(min_length=3, max_length=3)]
    labels: str
    # A distilled classifier has no other decision than one label.
    decision: dict[str, Any] = Field(default_factory=dict)
    names: Entries[str] = Field(default_factory=list)


def _read_note(path: Path) -> Note:
    """Return the note beside an output."""
    note = metadata_path(path)
    return check_schema(read_json(note, hint=_NEW), Note, note, StorageError, _NEW)


@dataclass(frozen=True)
class OutputMetadata:
    """How ``zicl classify`` wrote an output: its columns, whether its labels count options, and how it decided.

    ``labels`` are the names of all labels, in order. ``exists`` is False if no note was found beside the output; these
    are the defaults then.
    """

    text: str = "text"
    pair: str | None = None
    options: str | None = None
    id: str | None = None
    counted: bool = False
    decision: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    exists: bool = False

    @classmethod
    def read(cls, path: Path) -> OutputMetadata:
        """Read the note beside an output."""
        if not metadata_path(path).is_file():
            return cls()
        note = _read_note(path)
        if missing := {"columns", "labels"} - note.settings.keys():
            raise UsageError(
                f"{path} was not written by zicl classify: {metadata_path(path).name} has no {sorted(missing)[0]!r}",
                hint="expected a file written by zicl classify --file … -o …",
            )
        settings = check_schema(note.settings, ClassifySettings, metadata_path(path), StorageError, _NEW)
        text, pair, options = settings.columns
        counted = settings.labels.startswith("count =")
        names = tuple(settings.names)
        return cls(text or cls.text, pair, options, note.id, counted, settings.decision, names, exists=True)


class OutputFile:
    """A file that grows chunk by chunk; the incomplete chunk of a killed run is truncated.

    ``.NAME.zicl.json`` beside it holds the settings, and the size and hash of all complete chunks. ``finish`` makes a
    workbook or a Parquet file of the rows; the hash of it is held, too. With ``marked`` a new .csv file begins with a
    byte-order mark.
    """

    def __init__(
        self,
        path: Path,
        settings: dict[str, Any],
        columns: Sequence[str],
        *,
        id_column: str = "id",
        text_columns: Sequence[str] = (),
        marked: bool = False,
        overwrite: bool = False,
    ) -> None:
        check_output_path(path)
        if path.suffix == ".xlsx":
            check_workbook_columns(columns, path)
        self.path, self._columns, self._settings = path, list(columns), settings
        self.rows_path = rows_path(path)
        self._id_column, self._text_columns, self._marked = id_column, text_columns, marked
        self._digest = hashlib.sha256()
        # The hash of each written row's texts, by id.
        self.done: dict[str, int] = {}
        # The number of bytes that were truncated.
        self.truncated = 0
        # Whether the file is there, and this run's.
        self._begun = self.rows_path.exists() and not overwrite
        # The hashes that the file made of the rows may have: that of the last, and of one being put there when a run
        # was killed; and how many bytes of rows the last was made of.
        self._made, self._made_of, self._finished = list[str](), 0, False
        if self._begun:
            self._resume()
        elif not overwrite:
            check_resumable(path)

    def _start(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The note comes first: if the run is killed in between, a size of 0 truncates whatever the file holds.
        self._write_note(0)
        self.rows_path.write_bytes(b"")
        if self.rows_path != self.path:
            # Made of the rows of another run.
            real_path(self.path).unlink(missing_ok=True)
        self._begun = True

    def _resume(self) -> None:
        check_resumable(self.path)
        note = _read_note(self.path)
        before, now = note.settings, self._settings
        if before != now:
            changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
            raise _other_settings(self.path, changed)
        self._digest = _hash_written(self.path, note)
        self._made, self._made_of = note.made, note.made_of
        self._finished = self.rows_path != self.path and self.path.exists()
        self.truncated = self.rows_path.stat().st_size - note.bytes
        with storage_errors(self.rows_path), self.rows_path.open("r+b") as stream:
            stream.truncate(note.bytes)
        self._mark_done(self.records())
        if self.done and self.path.suffix == ".csv" and self._header() != self._columns:
            raise UsageError(f"{self.path} has other columns than this run would write", hint="choose another -o")

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the rows that are written; the values of a .csv file are strings."""
        with self.rows_path.open(encoding="utf-8-sig", newline="") as stream:
            csv.field_size_limit(1 << 30)
            if self.rows_path.suffix != ".jsonl":
                yield from csv.DictReader(stream)
                return
            records = map(json.loads, stream)
            yield from map(unpack_dates, records) if self.path.suffix == ".xlsx" else records

    def _header(self) -> list[str]:
        with self.path.open(encoding="utf-8-sig", newline="") as stream:
            return list(csv.DictReader(stream).fieldnames or [])

    def pending(self, rows: Sequence[InputRow]) -> list[InputRow]:
        """Return the rows that are not written yet; a written row whose text has changed is an error."""
        for row in rows:
            if row.id in self.done and self.done[row.id] != self._text_hash(row.columns):
                raise UsageError(
                    f"the row {row.id!r} has another text than when it was labelled in {self.path}",
                    hint="choose another -o, or pass --overwrite",
                )
        return [row for row in rows if row.id not in self.done]

    def write(self, records: Sequence[dict[str, Any]]) -> None:
        """Append a chunk of records."""
        if self.rows_path.suffix == ".jsonl":
            packed = map(pack_dates, records) if self.path.suffix == ".xlsx" else records
            encoded = "".join(to_json(record) + "\n" for record in packed).encode("utf-8")
        else:
            mark = BYTE_ORDER_MARK if self._marked and not self.done else ""
            encoded = (mark + to_csv(records, self._columns, header=not self.done)).encode("utf-8")
        with storage_errors(self.rows_path):
            if not self._begun:
                self._start()
            with self.rows_path.open("ab") as stream:
                stream.write(encoded)
                # On disk before the note says so, even if the machine loses power.
                stream.flush()
                os.fsync(stream.fileno())
            self._digest.update(encoded)
            self._write_note(self.rows_path.stat().st_size)
        self._mark_done(records)

    def finish(self) -> None:
        """Make the file of its rows, where these are beside it; one that has them all stays."""
        if self.rows_path == self.path or not self._begun:
            return
        size = self.rows_path.stat().st_size
        if not (self.path.exists() and self._made_of == size and file_hash(self.path) == self._made[-1]):
            self._make(size)
        self._finished = True
        self._write_note(size)

    def _make(self, size: int) -> None:
        records = list(self.records())
        columns = list(dict.fromkeys([*self._columns, *(name for record in records for name in record)]))
        with atomic_write(self.path) as temporary:
            (write_workbook if self.path.suffix == ".xlsx" else write_parquet)(temporary, columns, records)
            self._made, self._made_of = [*self._made[-1:], file_hash(temporary)], size
            self._write_note(size)

    def _mark_done(self, records: Iterable[Mapping[str, Any]]) -> None:
        self.done |= {str(record[self._id_column]): self._text_hash(record) for record in records}

    def _text_hash(self, record: Mapping[str, Any]) -> int:
        # A missing text is null in some formats, and an empty cell in others.
        return text_hash("\0".join("" if (v := record[c]) is None else str(v) for c in self._text_columns))

    def _write_note(self, size: int) -> None:
        chunks: dict[str, Any] = {"bytes": size, "sha256": self._digest.hexdigest()}
        if self.rows_path != self.path:
            chunks |= {"made": self._made, "made_of": self._made_of, "finished": self._finished}
        write_json(metadata_path(self.path), {"settings": self._settings, "id": self._id_column, **chunks})


def to_csv(records: Iterable[Mapping[str, Any]], columns: Sequence[str], *, header: bool = True) -> str:
    """Return records as CSV; a record with other columns is an error."""
    buffer = io.StringIO()
    minimal = csv.DictWriter(buffer, columns, lineterminator="\n")
    # Not every version of Python quotes a lone carriage return, and all of them read it as the end of a line.
    quoted = csv.DictWriter(buffer, columns, lineterminator="\n", quoting=csv.QUOTE_ALL)
    if header:
        (quoted if any("\r" in column for column in columns) else minimal).writeheader()
    for record in records:
        writer = quoted if any("\r" in str(value) for value in record.values()) else minimal
        writer.writerow(record)
    return buffer.getvalue()


def to_json(record: dict[str, Any]) -> str:
    """Return one line of JSON; values that JSON has no type for (dates of a Parquet file) become strings.

    >>> to_json({"text": "A gem.", "price": float("nan")})
    '{"text": "A gem.", "price": null}'
    """
    try:
        return json.dumps(record, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(record), ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    """Return a value in which null stands for what is no number: JSON has none of these."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
