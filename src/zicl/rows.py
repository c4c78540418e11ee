"""Rows to classify, from files of any kind, and the output they go to, row by row and resumable."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zicl._files import read_json, storage_errors, text_hash, write_json
from zicl.corpus.read import Reader, not_parquet
from zicl.corpus.sources import Source, detect_format
from zicl.corpus.tables import table_rows
from zicl.exceptions import StorageError, TextError, UsageError
from zicl.texts import check_columns, check_text


@dataclass(frozen=True)
class Row:
    """A text to classify, its id, all columns of the input, which are kept, and its own labels if it has any."""

    id: str
    text: str
    columns: dict[str, Any]
    options: tuple[str, ...] = ()


def read_rows(
    path: str,
    *,
    text_column: str = "text",
    id_column: str | None = None,
    pair_column: str | None = None,
    options_column: str | None = None,
) -> list[Row]:
    """All rows of a file (or ``-``), checked: every text usable, every id there and once.

    ``pair_column`` holds the second text of a pair, ``options_column`` each row's own labels.

    Without an ``id_column`` a column named ``id`` is used where there is one; else a row is named after its
    text, so that a run on a longer file knows which rows are new.
    """
    records = read_records(path)
    if id_column is None and any(isinstance(record, dict) and "id" in record for record in records):
        id_column = "id"
    wanted = {
        "--text-column": text_column,
        "--id-column": id_column,
        "--pair-column": pair_column,
        "--options-column": options_column,
    }
    rows = [_row(record, number, path, wanted) for number, record in enumerate(records, start=1)]
    if id_column is None:
        rows = _named_by_text(rows)
    if not rows:
        raise TextError(f"{path} holds no rows", hint="check the file")
    check_distinct((row.id for row in rows), path)
    return rows


def row_name(name: str, number: int) -> str:
    """How an error names a row: spreadsheets count the header as a row, and here it is not counted.

    >>> row_name("tickets.csv", 3)
    'tickets.csv, row 3 below the header'
    """
    return f"{name}, row {number}" + (" below the header" if detect_format(name) == "csv" else "")


def check_distinct(ids: Iterable[str], name: str) -> None:
    """Every id names one row."""
    seen: set[str] = set()
    for number, each in enumerate(ids, start=1):
        if each in seen:
            raise TextError(
                f"{row_name(name, number)}: the id {each!r} stands there twice", hint="name a column of unique ids"
            )
        seen.add(each)


def read_records(path: str) -> list[Any]:
    """The records of a .csv, .jsonl, .parquet or .txt file (or ``-``), as they are."""
    kind = "txt" if path == "-" else detect_format(path)
    if path != "-" and not Path(path).is_file():
        raise TextError(f"there is no file {path}", hint="check the path")
    if kind is None:
        raise TextError(f"{path}: a file of this kind cannot be read", hint="expected .csv, .jsonl, .parquet or .txt")
    return _parquet(path) if kind == "parquet" else list(_records(Source(path, "", kind), kind))


def _records(source: Source, kind: str) -> Iterable[Any]:
    reader = Reader(source)
    lines = (line for line in reader.lines_of_text() if line.strip())
    if kind == "txt":
        return ({"text": line.rstrip("\r\n")} for line in lines)
    if kind == "csv":
        return table_rows(reader.lines_of_text(), source.path)
    return (_json(line, number, source.name) for number, line in enumerate(lines, start=1))


def _json(line: str, number: int, name: str) -> Any:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise TextError(
            f"{name}, line {number}: not JSON ({error.msg})", hint="expected one JSON object a line"
        ) from error
    return {"text": value} if isinstance(value, str) else value


def _parquet(path: str) -> list[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_table(path).to_pylist())
    except pa.ArrowInvalid as error:
        raise not_parquet(Path(path).name, error) from error


def _row(record: Any, number: int, path: str, wanted: Mapping[str, str | None]) -> Row:
    where = row_name("standard input" if path == "-" else Path(path).name, number)
    if not isinstance(record, dict):
        raise TextError(f"{where}: expected an object, found {type(record).__name__}")
    for option, column in wanted.items():
        if column is not None and column not in record:
            raise TextError(
                f"{where}: there is no column {column!r}",
                hint=f"name it with {option}; there are: {', '.join(map(str, record))}",
            )
    text_column, id_column, pair_column, options_column = wanted.values()
    text = check_columns(record, str(text_column), pair_column, where)
    options = () if options_column is None else read_options(record[options_column], where)
    columns = {str(key): value for key, value in record.items()}
    return Row(str(number if id_column is None else record[id_column]), text, columns, options)


def _named_by_text(rows: list[Row]) -> list[Row]:
    """Ids from the texts; the second of two equal texts gets a number behind its id."""
    seen: Counter[str] = Counter()
    named = []
    for row in rows:
        name = f"{text_hash(row.text):016x}"
        seen[name] += 1
        identity = name if seen[name] == 1 else f"{name}-{seen[name]}"
        named.append(replace(row, id=identity, columns={"id": identity, **row.columns}))
    return named


def read_options(value: Any, where: str) -> tuple[str, ...]:
    """A row's own labels: a list, a JSON list, or words parted by ``|``.

    >>> read_options("a cat | a dog", "row 1")
    ('a cat', 'a dog')
    """
    if isinstance(value, str):
        text = value.strip()
        try:
            value = json.loads(text) if text.startswith("[") else text.split("|")
        except json.JSONDecodeError as error:
            raise TextError(f"{where}: its options are not JSON ({error.msg})", hint='["a cat", "a dog"]') from error
    if not isinstance(value, list | tuple) or len(value) < 2 or not all(isinstance(each, str) for each in value):
        raise TextError(f"{where}: expected at least two options, found {value!r}", hint="a list, or a cat|a dog")
    return tuple(check_text(each.strip(), f"{where}, an option,") for each in value)


@dataclass(frozen=True)
class Columns:
    """The columns of a file that a classifier reads."""

    text: str = "text"
    pair: str | None = None
    options: str | None = None


def written_columns(path: Path) -> Columns:
    """Which columns of an output were classified, as noted beside it; the usual ones where nothing is noted."""
    note = note_path(path)
    named = read_json(note)["settings"].get("columns") if note.is_file() else None
    return Columns(*named) if named else Columns()


def note_path(path: Path) -> Path:
    """The file beside an output that says how it was made and how much of it is whole."""
    return path.with_name(f".{path.name}.zicl.json")


class Output:
    """A CSV or JSONL file that grows by whole chunks; what a killed run left unfinished is cut off again.

    Beside it stands ``.NAME.zicl.json`` with the settings and the size of the last whole chunk.
    """

    def __init__(
        self,
        path: Path,
        settings: dict[str, Any],
        columns: Sequence[str],
        *,
        id_column: str = "id",
        text_columns: Sequence[str] = (),
        overwrite: bool = False,
    ) -> None:
        if path.suffix not in (".csv", ".jsonl"):
            raise UsageError(
                f"{path}: results are written row by row, as .csv or .jsonl", hint="end its name in one of them"
            )
        self.path, self._columns, self._settings = path, list(columns), settings
        self._id, self._texts = id_column, text_columns
        self._note = note_path(path)
        # The ids of the rows that are there, with hashes of their texts.
        self.done: dict[str, int] = {}
        self.cut = 0
        if path.exists() and not overwrite:
            self._resume()
        else:
            self._start()

    def _start(self) -> None:
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The note first: a size of 0 is right whatever the file still holds when we are stopped here.
            self._save_note(0)
            self.path.write_bytes(b"")

    def _resume(self) -> None:
        if not self._note.is_file():
            raise StorageError(
                f"{self.path} exists and was not written by zicl", hint="choose another -o, or pass --overwrite"
            )
        note = read_json(self._note)
        now = self._settings
        # Files that were begun before their columns were noted.
        before = {**{name: now[name] for name in ("columns",) if name in now}, **note["settings"]}
        if before != now:
            changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
            raise UsageError(
                f"{self.path} was begun with other settings ({', '.join(changed)})",
                hint="use the same ones, choose another -o, or pass --overwrite",
            )
        self.cut = self.path.stat().st_size - note["bytes"]
        if self.cut < 0:
            raise StorageError(
                f"{self.path} is shorter than when zicl last wrote to it", hint="restore it, or pass --overwrite"
            )
        with storage_errors(self.path), self.path.open("r+b") as stream:
            stream.truncate(note["bytes"])
        with self.path.open(encoding="utf-8", newline="") as stream:
            if self.path.suffix == ".jsonl":
                self._know(map(json.loads, stream))
                return
            csv.field_size_limit(1 << 30)
            rows = csv.DictReader(stream)
            self._know(rows)
            if self.done and list(rows.fieldnames or []) != self._columns:
                raise UsageError(f"{self.path} has other columns than this run would write", hint="choose another -o")

    def _know(self, records: Iterable[Mapping[str, Any]]) -> None:
        self.done |= {str(record[self._id]): self._hash(record) for record in records}

    def _hash(self, record: Mapping[str, Any]) -> int:
        return text_hash("\0".join(str(record[column]) for column in self._texts))

    def left(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that are not there yet; one that is there with another text is an error."""
        for row in rows:
            if row.id in self.done and self.done[row.id] != self._hash(row.columns):
                raise UsageError(
                    f"the row {row.id!r} has another text than when it was labelled in {self.path}",
                    hint="choose another -o, or pass --overwrite",
                )
        return [row for row in rows if row.id not in self.done]

    def write(self, records: Sequence[dict[str, Any]]) -> None:
        """Append a chunk, whole, and note that it is there."""
        with storage_errors(self.path):
            with self.path.open("ab") as stream:
                stream.write(self._encode(records).encode("utf-8"))
            self._save_note(self.path.stat().st_size)
        self._know(records)

    def _encode(self, records: Sequence[dict[str, Any]]) -> str:
        if self.path.suffix == ".jsonl":
            return "".join(to_json(record) + "\n" for record in records)
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, self._columns, lineterminator="\n")
        if not self.done:
            writer.writeheader()
        writer.writerows(records)
        return buffer.getvalue()

    def _save_note(self, size: int) -> None:
        write_json(self._note, {"settings": self._settings, "bytes": size})


def to_json(record: dict[str, Any]) -> str:
    """One line of JSON; what JSON does not know (dates in a Parquet file) becomes text."""
    return json.dumps(record, ensure_ascii=False, default=str)
