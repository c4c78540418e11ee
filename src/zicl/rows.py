"""Rows to classify, from files of any kind, and the output they go to, row by row and resumable."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zicl._files import read_json, storage_errors, write_json
from zicl.corpus.read import Reader
from zicl.corpus.sources import Source, detect_format
from zicl.exceptions import StorageError, TextError, UsageError
from zicl.texts import check_text


@dataclass(frozen=True)
class Row:
    """A text to classify, its id, and all columns of the input, which are kept."""

    id: str
    text: str
    columns: dict[str, Any]


def read_rows(path: str, *, text_column: str = "text", id_column: str | None = None) -> list[Row]:
    """All rows of a file (or ``-``), checked: every text usable, every id there and once.

    Without an ``id_column`` a column named ``id`` is used where there is one, else rows are numbered.
    """
    kind = "txt" if path == "-" else detect_format(path)
    if path != "-" and not Path(path).is_file():
        raise TextError(f"there is no file {path}", hint="check the path")
    if kind is None:
        raise TextError(f"{path}: a file of this kind cannot be read", hint="expected .csv, .jsonl, .parquet or .txt")
    records = _parquet(path) if kind == "parquet" else list(_records(Source(path, "", kind), kind))
    if id_column is None and records and all(isinstance(r, dict) and "id" in r for r in records):
        id_column = "id"
    rows = [_row(record, number, path, text_column, id_column) for number, record in enumerate(records, start=1)]
    if not rows:
        raise TextError(f"{path} holds no rows", hint="check the file")
    seen: set[str] = set()
    for number, row in enumerate(rows, start=1):
        if row.id in seen:
            raise TextError(
                f"{path}, row {number}: the id {row.id!r} stands there twice",
                hint="name a column of unique ids",
            )
        seen.add(row.id)
    return rows


def _records(source: Source, kind: str) -> Iterable[Any]:
    reader = Reader(source)
    lines = (line for line in reader.lines_of_text() if line.strip())
    if kind == "txt":
        return ({"text": line.rstrip("\r\n")} for line in lines)
    if kind == "csv":
        return csv.DictReader(reader.lines_of_text(), delimiter="\t" if ".tsv" in source.path else ",")
    return (_json(line, number, source.name) for number, line in enumerate(lines, start=1))


def _json(line: str, number: int, name: str) -> Any:  # noqa: ANN401 - whatever the line holds
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise TextError(
            f"{name}, line {number}: not JSON ({error.msg})", hint="expected one JSON object a line"
        ) from error
    return {"text": value} if isinstance(value, str) else value


def _parquet(path: str) -> list[Any]:
    import pyarrow.parquet as pq

    return list(pq.read_table(path).to_pylist())


def _row(record: Any, number: int, path: str, text_column: str, id_column: str | None) -> Row:  # noqa: ANN401
    name = "standard input" if path == "-" else Path(path).name
    if not isinstance(record, dict):
        raise TextError(f"{name}, row {number}: expected an object, found {type(record).__name__}")
    for option, column in (("--text-column", text_column), ("--id-column", id_column)):
        if column is not None and column not in record:
            raise TextError(
                f"{name}, row {number}: there is no column {column!r}",
                hint=f"name it with {option}; there are: {', '.join(map(str, record))}",
            )
    text = check_text(record[text_column], f"{name}, row {number}, column {text_column!r},")
    columns = {str(key): value for key, value in record.items()}
    if id_column is None:
        return Row(str(number), text, {"id": str(number), **columns})
    return Row(str(record[id_column]), text, columns)


class Output:
    """A CSV or JSONL file that grows by whole chunks; what a killed run left unfinished is cut off again.

    Beside it stands ``.NAME.zicl.json`` with the settings and the size of the last whole chunk.
    """

    def __init__(self, path: Path, settings: dict[str, Any], id_column: str, *, overwrite: bool = False) -> None:
        self.path, self._id, self._note = path, id_column, path.with_name(f".{path.name}.zicl.json")
        self._kind = detect_format(path.name)
        if self._kind not in ("csv", "jsonl"):
            raise UsageError(
                f"{path}: results are written row by row, as .csv or .jsonl",
                hint="end its name in one of them",
            )
        self._settings = settings
        self.done: set[str] = set()
        self._columns: list[str] = []
        if path.exists() and not overwrite:
            self._resume()
        else:
            self._start()

    def _start(self) -> None:
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(b"")
        self._save_note()

    def _resume(self) -> None:
        if not self._note.is_file():
            raise StorageError(
                f"{self.path} exists and was not written by zicl",
                hint="choose another -o, or pass --overwrite",
            )
        note = read_json(self._note)
        if note["settings"] != self._settings:
            changed = sorted(
                k for k in {*note["settings"], *self._settings} if note["settings"].get(k) != self._settings.get(k)
            )
            raise UsageError(
                f"{self.path} was begun with other settings ({', '.join(changed)})",
                hint="use the same ones, choose another -o, or pass --overwrite",
            )
        with storage_errors(self.path), self.path.open("r+b") as stream:
            stream.truncate(note["bytes"])
        with self.path.open(encoding="utf-8", newline="") as stream:
            if self._kind == "csv":
                rows: Iterable[dict[str, Any]] = csv.DictReader(stream)
                self.done = {row[self._id] for row in rows}
                self._columns = list(getattr(rows, "fieldnames", None) or [])
            else:
                self.done = {str(json.loads(line)[self._id]) for line in stream}

    def write(self, records: Sequence[dict[str, Any]]) -> None:
        """Append a chunk, whole, and note that it is there."""
        if not records:
            return
        with storage_errors(self.path), self.path.open("ab") as stream:
            stream.write(self._encode(records).encode("utf-8"))
        self.done |= {str(record[self._id]) for record in records}
        self._save_note()

    def _encode(self, records: Sequence[dict[str, Any]]) -> str:
        if self._kind == "jsonl":
            return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, self._columns or list(records[0]), extrasaction="raise", lineterminator="\n")
        if not self._columns:
            self._columns = list(records[0])
            writer.writeheader()
        writer.writerows(records)
        return buffer.getvalue()

    def _save_note(self) -> None:
        write_json(self._note, {"settings": self._settings, "bytes": self.path.stat().st_size})
