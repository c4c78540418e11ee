"""Rows to classify, from files of any kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zicl._util.files import text_hash
from zicl.corpus.read import Reader, not_parquet
from zicl.corpus.sources import Source, detect_format
from zicl.exceptions import TextError
from zicl.inputs.tables import table_rows
from zicl.inputs.texts import check_columns, check_text


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
    distinct: bool = True,
) -> list[Row]:
    """All rows of a file (or ``-``), checked: every text usable, every id there and, if ``distinct``, once.

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
    _check_texts(records, path, text_column)
    rows = [_row(record, number, path, wanted) for number, record in enumerate(records, start=1)]
    if id_column is None:
        rows = _named_by_text(rows)
    if not rows:
        raise TextError(f"{path} holds no rows", hint="check the file")
    if distinct:
        check_distinct((row.id for row in rows), path)
    return rows


def _check_texts(records: list[Any], path: str, column: str) -> None:
    """Where several rows have no text, all are told at once, so that the file need not be mended row by row."""
    texts = [record.get(column) if isinstance(record, dict) else None for record in records]
    empty = [number for number, text in enumerate(texts, start=1) if isinstance(text, str) and not text.strip()]
    if len(empty) > 1:
        first = ", ".join(map(str, empty[:5])) + (" and so on" if len(empty) > 5 else "")
        raise TextError(
            f"{row_name('standard input' if path == '-' else Path(path).name, empty[0])}: column {column!r} is empty, "
            f"as it is in {len(empty)} rows in all ({first})",
            hint="drop rows without text",
        )


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
    """Ids from the texts and a row's own labels; the second of two equal rows gets a number behind its id."""
    seen: Counter[str] = Counter()
    named = []
    for row in rows:
        name = f"{text_hash(chr(0).join((row.text, *row.options))):016x}"
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
