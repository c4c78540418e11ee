"""The output that classified rows go to, row by row and resumable, and what is noted beside it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zicl._util.files import read_json, storage_errors, text_hash, write_json
from zicl.exceptions import StorageError, UsageError
from zicl.inputs.tables import InputRow


@dataclass(frozen=True)
class OutputNote:
    """How an output was made: the columns that were classified, and whether its labels count options.

    ``noted`` is False where no note lies beside it, and these are guesses.
    """

    text: str = "text"
    pair: str | None = None
    options: str | None = None
    id: str | None = None
    counted: bool = False
    noted: bool = False

    @classmethod
    def of(cls, path: Path) -> OutputNote:
        """What is noted beside an output."""
        beside = note_path(path)
        if not beside.is_file():
            return cls()
        note = read_json(beside)
        text, pair, options = note["settings"].get("columns") or ("text", None, None)
        counted = str(note["settings"].get("labels", "")).startswith("count =")
        return cls(text, pair, options, note.get("id"), counted, noted=True)


def note_path(path: Path) -> Path:
    """The file beside an output that says how it was made and how much of it is whole."""
    return path.with_name(f".{path.name}.zicl.json")


class OutputFile:
    """A CSV or JSONL file that grows by whole chunks; what a killed run left unfinished is cut off again.

    Beside it stands ``.NAME.zicl.json`` with the settings, and size and hash of all whole chunks.
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
        self._note, self._written = note_path(path), hashlib.sha256()
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
        self._check_unchanged(note)
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

    def _check_unchanged(self, note: Mapping[str, Any]) -> None:
        """What a spreadsheet wrote anew is neither cut nor added to."""
        left = note["bytes"]
        with self.path.open("rb") as stream:
            while piece := stream.read(min(left, 1 << 20)):
                self._written.update(piece)
                left -= len(piece)
        if note.get("sha256", self._written.hexdigest()) != self._written.hexdigest():
            raise StorageError(
                f"{self.path} was changed since zicl last wrote to it",
                hint="write the rows that are new to another -o, restore the file, or pass --overwrite",
            )

    def _know(self, records: Iterable[Mapping[str, Any]]) -> None:
        self.done |= {str(record[self._id]): self._hash(record) for record in records}

    def _hash(self, record: Mapping[str, Any]) -> int:
        return text_hash("\0".join(str(record[column]) for column in self._texts))

    def left(self, rows: Sequence[InputRow]) -> list[InputRow]:
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
        encoded = self._encode(records).encode("utf-8")
        with storage_errors(self.path):
            with self.path.open("ab") as stream:
                stream.write(encoded)
            self._written.update(encoded)
            self._save_note(self.path.stat().st_size)
        self._know(records)

    def _encode(self, records: Sequence[dict[str, Any]]) -> str:
        if self.path.suffix == ".jsonl":
            return "".join(to_json(record) + "\n" for record in records)
        return to_csv(records, self._columns, header=not self.done)

    def _save_note(self, size: int) -> None:
        whole = {"bytes": size, "sha256": self._written.hexdigest()}
        write_json(self._note, {"settings": self._settings, "id": self._id, **whole})


def to_csv(records: Iterable[Mapping[str, Any]], columns: Sequence[str], *, header: bool = True) -> str:
    """The text of a table; columns that are not asked for are an error."""
    buffer = io.StringIO()
    usual = csv.DictWriter(buffer, columns, lineterminator="\n")
    # Not every Python quotes a lone carriage return by itself, and all of them read it as a line's end.
    careful = csv.DictWriter(buffer, columns, lineterminator="\n", quoting=csv.QUOTE_ALL)
    if header:
        usual.writeheader()
    for record in records:
        writer = careful if any("\r" in str(value) for value in record.values()) else usual
        writer.writerow(record)
    return buffer.getvalue()


def to_json(record: dict[str, Any]) -> str:
    """One line of JSON; what JSON does not know (dates in a Parquet file) becomes text."""
    return json.dumps(record, ensure_ascii=False, default=str)
