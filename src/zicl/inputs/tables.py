"""Read the rows of a user's file: .csv, .tsv, .jsonl, .parquet or .txt, with errors that name the row.

``read_records`` returns what a file holds; ``read_rows`` checks it and returns texts to classify.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from zicl._util.files import text_hash
from zicl._util.strict_json import has_half_character, parse_json
from zicl.exceptions import TextError
from zicl.inputs.files import (
    TextFile,
    check_names,
    detect_format,
    display_name,
    parquet_rows,
    record_limit,
    too_long,
)
from zicl.inputs.pair import Text, text_key
from zicl.inputs.texts import check_columns, check_text, is_empty

# An error about many rows names the first of them.
_NAMED_ROWS = 5
_DELIMITERS = {";": "semicolons", "\t": "tabs", ",": "commas"}


@dataclass(frozen=True)
class InputRow:
    """A text to classify with its id, all columns of the input, and the row's options if it has any.

    An ``empty`` row has no text, and gets no label.
    """

    id: str
    text: Text
    columns: dict[str, Any]
    options: tuple[str, ...] = ()
    empty: bool = False


def read_rows(
    path: str,
    *,
    text_column: str = "text",
    id_column: str | None = None,
    pair_column: str | None = None,
    options_column: str | None = None,
    distinct: bool = True,
    skip_empty: bool = False,
) -> list[InputRow]:
    """Return all rows of a file (or ``-``), checked: every text is usable, every id exists and, if ``distinct``, once.

    Rows without a text are an error, or with ``skip_empty`` returned as ``empty``.

    ``pair_column`` holds the second text of a pair, ``options_column`` the labels that a row may have.

    Without an ``id_column``, the column ``id`` is used if it exists; else ids are made from the texts, so that a run
    on a longer file recognises the rows that are done.
    """
    records = read_records(path)
    if id_column is None and any(isinstance(record, dict) and "id" in record for record in records):
        id_column = "id"
    columns = {
        "--text-column": text_column,
        "--id-column": id_column,
        "--pair-column": pair_column,
        "--options-column": options_column,
    }
    empty = _empty_rows(records, text_column, pair_column)
    if empty and not skip_empty:
        raise _empty_error(empty, path)
    rows = [_row(record, number, path, columns, empty=number in empty) for number, record in enumerate(records, 1)]
    if id_column is None:
        rows = _with_ids(rows)
    if all(row.empty for row in rows):
        raise TextError(f"{path} holds no rows{' with a text' if rows else ''}", hint="check the file")
    if distinct:
        check_distinct((row.id for row in rows), path)
    return rows


def _empty_rows(records: list[Any], *columns: str | None) -> dict[int, str]:
    """Return the numbers of the rows without a text, and the column where it is missing."""
    found: dict[int, str] = {}
    for column in filter(None, columns):
        for number, record in enumerate(records, start=1):
            if isinstance(record, dict) and column in record and is_empty(record[column]):
                found.setdefault(number, column)
    return dict(sorted(found.items()))


def _empty_error(empty: Mapping[int, str], path: str) -> TextError:
    """Return the error for all rows without a text, so that the file can be corrected in one go."""
    first, column = next(iter(empty.items()))
    numbers = ", ".join(map(str, list(empty)[:_NAMED_ROWS])) + (", …" if len(empty) > _NAMED_ROWS else "")
    others = f", as in {len(empty):,} rows in total ({numbers})" if len(empty) > 1 else ""
    return TextError(
        f"{row_name(display_name(path), first)}, column {column!r}, is empty{others}",
        hint="drop rows without text; zicl classify --skip-empty keeps them in the output, without a label",
    )


def _row(record: Any, number: int, path: str, columns: Mapping[str, str | None], *, empty: bool) -> InputRow:
    where = row_name(display_name(path), number)
    if not isinstance(record, dict):
        raise TextError(f"{where}: expected an object, found {type(record).__name__}")
    for option, column in columns.items():
        if column is not None and column not in record:
            raise TextError(
                f"{where}: there is no column {column!r}",
                hint=f"name it with {option}; there are: {', '.join(map(str, record))}",
            )
    text_column, id_column, pair_column, options_column = columns.values()
    row_id = str(number if id_column is None else record[id_column])
    values = {str(key): value for key, value in record.items()}
    if empty:
        return InputRow(row_id, "", values, empty=True)
    text = check_columns(record, str(text_column), pair_column, where)
    options = () if options_column is None else read_options(record[options_column], where)
    return InputRow(row_id, text, values, options)


def _with_ids(rows: list[InputRow]) -> list[InputRow]:
    """Make ids from texts and options; repeated rows get a number after their id."""
    seen: Counter[str] = Counter()
    named = []
    for row in rows:
        digest = f"{text_hash(chr(0).join((text_key(row.text), *row.options))):016x}"
        seen[digest] += 1
        row_id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        named.append(replace(row, id=row_id, columns={"id": row_id, **row.columns}))
    return named


def row_name(name: str, number: int) -> str:
    """Return how errors name a row: spreadsheets count the header as a row, and here it does not count.

    >>> row_name("tickets.csv", 3)
    'tickets.csv, row 3 below the header'
    """
    return f"{name}, row {number}" + (" below the header" if detect_format(name) == "csv" else "")


def check_distinct(ids: Iterable[str], name: str) -> None:
    """Check that no two rows of a file have the same id."""
    seen: set[str] = set()
    for number, each in enumerate(ids, start=1):
        if each in seen:
            raise TextError(
                f"{row_name(name, number)}: the id {each!r} occurs twice", hint="name a column of unique ids"
            )
        seen.add(each)


def read_options(value: Any, where: str) -> tuple[str, ...]:
    """Return the labels that a row may have, from a list, a JSON list, or words separated by ``|``.

    >>> read_options("a cat | a dog", "row 1")
    ('a cat', 'a dog')
    """
    if isinstance(value, str):
        text = value.strip()
        try:
            value = parse_json(text) if text.startswith("[") else text.split("|")
        except ValueError as error:
            raise TextError(f"{where}: its options are not JSON ({error})", hint='["a cat", "a dog"]') from error
    if not isinstance(value, list | tuple) or len(value) < 2 or not all(isinstance(each, str) for each in value):
        raise TextError(f"{where}: expected at least two options, found {value!r}", hint="a list, or a cat|a dog")
    return tuple(check_text(each.strip(), f"{where}, an option,") for each in value)


# -- file formats ------------------------------------------------------------------------------------


def read_records(path: str) -> list[Any]:
    """Return the unchecked records of a .csv, .tsv, .jsonl, .parquet or .txt file, or the lines of ``-``."""
    kind = "txt" if path == "-" else detect_format(path)
    if path != "-" and not os.path.isfile(path):
        raise TextError(f"there is no file {path}", hint="check the path")
    if kind is None:
        raise TextError(f"{path}: a file of this kind cannot be read", hint="expected .csv, .jsonl, .parquet or .txt")
    if kind == "parquet":
        return [row for _, row in parquet_rows(path)]
    file = TextFile(path)
    if kind == "csv":
        return list(csv_rows(file.lines(), path))
    if kind == "txt":
        return [{"text": line.rstrip("\r\n")} for line in file.lines() if line.strip()]
    return [{"text": value} if isinstance(value, str) else value for _, value in json_lines(file)]


def json_lines(file: TextFile) -> Iterator[tuple[int, Any]]:
    """Yield the line number and value of every line of JSON; blank lines are skipped."""
    for number, line in enumerate(file.lines(), start=1):
        if line.strip():
            try:
                value = parse_json(line)
            except ValueError as error:
                raise TextError(
                    f"{file.name}, line {number}: not JSON ({error})",
                    hint="expected one JSON object per line, with each key once",
                ) from error
            if has_half_character(line, value):
                raise TextError(
                    f"{file.name}, line {number}: a key or a value holds a broken character (a lone surrogate)",
                    hint="the file was not written as UTF-8: write it again",
                )
            yield number, value


def csv_rows(lines: Iterable[str], name: str) -> Iterator[dict[str, str]]:
    r"""Yield the rows of a table by the names in its header; a row that does not match the header is an error.

    >>> list(csv_rows(["id,text\n", '1,"A gem, truly."\n'], "films.csv"))
    [{'id': '1', 'text': 'A gem, truly.'}]
    """
    longest = record_limit()
    csv.field_size_limit(longest)
    delimiter, file = _delimiter(name), PurePath(name).name
    # Strict: an unclosed quote would otherwise swallow all rows up to the next quote.
    length = 0

    def counted() -> Iterator[str]:
        nonlocal length
        for line in lines:
            length += len(line)
            if length > longest:
                raise too_long(f"{file}, the row that begins in line {reader.line_num + 1}")
            yield line

    reader = csv.DictReader(counted(), delimiter=delimiter, strict=True)
    try:
        _check_header(reader.fieldnames or (), delimiter, file)
        for number, row in enumerate(reader, start=1):
            # csv puts extra cells under the key None, and None into missing cells.
            more, fewer = None in row, None in row.values()
            if more or fewer:
                raise TextError(
                    f"{file}, row {number} below the header: it has {'more' if more else 'fewer'} cells than the "
                    "header has names",
                    hint=f"put quotes around a text that holds {'a tab' if delimiter == chr(9) else 'a comma'} or a "
                    'line break: "one, two"',
                )
            yield row
            length = 0
    except csv.Error as error:
        raise TextError(
            f"{file}, the row that begins in line {reader.line_num + 1}: {error}",
            hint='a cell that begins with a quote has to end with one, and quotes inside it are doubled: "a ""b"" c"; '
            "or write the rows as .jsonl",
        ) from error


def _delimiter(name: str) -> str:
    r"""Return the delimiter that a file name implies.

    >>> _delimiter("a.TSV.gz"), _delimiter("dump.tsv/a.csv")
    ('\t', ',')
    """
    file = PurePath(name).name.lower().removesuffix(".gz").removesuffix(".zst")
    return "\t" if file.endswith(".tsv") else ","


def _check_header(names: Sequence[str], delimiter: str, file: str) -> None:
    """Detect a header written with the wrong delimiter, and columns that could not be told apart."""
    check_names(names, file)
    others = [word for mark, word in _DELIMITERS.items() if len(names) == 1 and mark != delimiter and mark in names[0]]
    if others:
        raise TextError(
            f"{file}: its header is separated by {others[0]}, but {_DELIMITERS[delimiter]} were expected",
            hint="write a .csv with commas or a .tsv with tabs; most spreadsheets ask for the delimiter on export",
        )
