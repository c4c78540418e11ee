"""Tables of cells parted by commas or tabs: a row that does not fit its header is an error, never taken in part."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from zicl._util.files import text_hash
from zicl.exceptions import TextError
from zicl.inputs.files import TextFile, detect_format, display_name, not_parquet
from zicl.inputs.pair import Text, text_key
from zicl.inputs.texts import check_columns, check_text

_LONGEST_CELL = 1 << 30


def table_rows(lines: Iterable[str], name: str) -> Iterator[dict[str, str]]:
    r"""The rows of a table by the names in its first line.

    >>> list(table_rows(["id,text\n", '1,"A gem, truly."\n'], "films.csv"))
    [{'id': '1', 'text': 'A gem, truly.'}]
    """
    csv.field_size_limit(_LONGEST_CELL)
    delimiter = "\t" if _is_tabbed(name) else ","
    # Strict: a quote without its other half would otherwise swallow all rows up to the next one.
    reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
    mark, file = "a tab" if delimiter == "\t" else "a comma", PurePath(name).name
    try:
        _check_header(reader.fieldnames or (), delimiter, file)
        for number, row in enumerate(reader, start=1):
            # How csv marks cells without a name, and names without a cell.
            more, fewer = None in row, None in row.values()
            if more or fewer:
                raise TextError(
                    f"{file}, row {number} below the header: it has {'more' if more else 'fewer'} cells than the "
                    "header has names",
                    hint=f'put quotes around a text that holds {mark} or a line break: "one, two"',
                )
            yield row
    except csv.Error as error:
        raise TextError(
            f"{file}, the row that begins in line {reader.line_num + 1}: {error}",
            hint='a cell that begins with a quote has to end with one, and quotes inside it are doubled: "a ""b"" c"; '
            "or write the rows as .jsonl",
        ) from error


def _check_header(names: Sequence[str], delimiter: str, file: str) -> None:
    """One name that holds what parts cells elsewhere is several."""
    others = {";": "semicolons", "\t": "tabs", ",": "commas"}
    found = [word for mark, word in others.items() if len(names) == 1 and mark != delimiter and mark in names[0]]
    if found:
        raise TextError(
            f"{file}: {found[0]} stand between the names of its header, and {others[delimiter]} were expected",
            hint="write a .csv with commas or a .tsv with tabs; most spreadsheets ask for the mark when they export",
        )


def _is_tabbed(name: str) -> bool:
    """Whether a file's name says that tabs stand between its cells.

    >>> _is_tabbed("a.TSV.gz"), _is_tabbed("dump.tsv/a.csv")
    (True, False)
    """
    last = PurePath(name).name.lower().removesuffix(".gz").removesuffix(".zst")
    return last.endswith(".tsv")


# -- Rows to classify, from files of any kind.


@dataclass(frozen=True)
class InputRow:
    """A text to classify, its id, all columns of the input, which are kept, and its own labels if it has any."""

    id: str
    text: Text
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
) -> list[InputRow]:
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
            f"{row_name(display_name(path), empty[0])}: column {column!r} is empty, "
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
    return _parquet(path) if kind == "parquet" else list(_records(TextFile(path), kind))


def _records(file: TextFile, kind: str) -> Iterable[Any]:
    lines = (line for line in file.lines() if line.strip())
    if kind == "txt":
        return ({"text": line.rstrip("\r\n")} for line in lines)
    if kind == "csv":
        return table_rows(file.lines(), file.path)
    return (_json(line, number, file.name) for number, line in enumerate(lines, start=1))


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


def _row(record: Any, number: int, path: str, wanted: Mapping[str, str | None]) -> InputRow:
    where = row_name(display_name(path), number)
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
    return InputRow(str(number if id_column is None else record[id_column]), text, columns, options)


def _named_by_text(rows: list[InputRow]) -> list[InputRow]:
    """Ids from the texts and a row's own labels; the second of two equal rows gets a number behind its id."""
    seen: Counter[str] = Counter()
    named = []
    for row in rows:
        name = f"{text_hash(chr(0).join((text_key(row.text), *row.options))):016x}"
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
