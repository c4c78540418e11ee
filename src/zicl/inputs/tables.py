"""Read the rows of a user's file: .csv, .tsv, .jsonl, .parquet, .arrow, .xlsx or .txt, with errors that name the row.

``read_records`` returns what a file holds; ``read_rows`` checks it and returns texts to classify.
"""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple

from zicl._util.files import text_hash
from zicl._util.strict_json import json_has_half_character, parse_json
from zicl.exceptions import InputWarning, TextError
from zicl.inputs.arrow import arrow_rows
from zicl.inputs.excel import excel_rows
from zicl.inputs.files import (
    TextFile,
    check_names,
    check_readable,
    detect_format,
    display_name,
    no_column,
    record_limit,
    too_long,
)
from zicl.inputs.pair import Text, text_key
from zicl.inputs.texts import cell_text, check_columns, check_text, is_empty

# An error about many rows names the first of them.
_NAMED_ROWS = 5
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_QUOTED = {",": '"one, two"', ";": '"one; two"', "\t": '"one<tab>two"'}
# How to say that a mark in the header is a part of a name.
_NOT_OTHER = {",": "if commas separate its cells, say so in a line before the header: sep=,", "\t": "a .tsv has tabs"}
# What Excel reads, and some programs write, before the header.
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t])"?', re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][-+]?\d+)?")
_IN_QUOTES = re.compile(r'"[^"]*"')


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
    if detect_format(path) == "xlsx":
        # A text of digits is a number to a spreadsheet.
        texts = [text_column, *filter(None, [pair_column, options_column])]
        records = [
            {name: cell_text(value) if name in texts else value for name, value in record.items()} for record in records
        ]
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
    hint = "drop rows without text; zicl classify --skip-empty keeps them in the output, without a label"
    if detect_format(path) == "xlsx":
        hint += "; if formulas are there, save the file in a spreadsheet program, which computes them"
    return TextError(f"{row_name(display_name(path), first)}, column {column!r}, is empty{others}", hint=hint)


def _row(record: Any, number: int, path: str, columns: Mapping[str, str | None], *, empty: bool) -> InputRow:
    where = row_name(display_name(path), number)
    if not isinstance(record, dict):
        raise TextError(f"{where}: expected an object, found {type(record).__name__}")
    for option, column in columns.items():
        if column is not None and column not in record:
            raise no_column(f"{where}: there is no column {column!r}", column, record, f"name it with {option}")
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
    return f"{name}, row {number}" + (" below the header" if detect_format(name) in ("csv", "xlsx") else "")


def read_number(value: Any) -> float | None:
    """Return a cell as a finite number, with a decimal point or a comma; None if it is none.

    >>> read_number("0.25"), read_number("0,25"), read_number("a lot")
    (0.25, 0.25, None)
    """
    text = str(value).strip()
    try:
        number = float(text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


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
    """Return the unchecked records of a file of any format, or the lines of ``-``."""
    kind = "txt" if path == "-" else check_readable(path)
    if kind in ("parquet", "arrow"):
        return [row for _, row in arrow_rows(path, kind)]
    if kind == "xlsx":
        return list(excel_rows(path))
    file = TextFile(path)
    if kind == "csv":
        return list(csv_rows(file.lines(), path))
    if kind == "txt":
        return [{"text": line.rstrip("\r\n")} for line in txt_lines(file)]
    return [{"text": value} if isinstance(value, str) else value for _, value in json_lines(file)]


def txt_lines(file: TextFile) -> Iterator[str]:
    """Yield the lines of a text file, a text each; blank lines are skipped."""
    for number, line in enumerate(file.lines()):
        if number == 0 and file.is_utf16 and "\t" in line:
            raise TextError(
                f"{file.name} is a table with tabs, as Excel saves it as Unicode text",
                hint=f"rename it to {PurePath(file.name).with_suffix('.tsv')}",
            )
        if line.strip():
            yield line


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
            if json_has_half_character(line, value):
                raise TextError(
                    f"{file.name}, line {number}: a key or a value holds a broken character (a lone surrogate)",
                    hint="the file was not written as UTF-8: write it again",
                )
            yield number, value


def csv_rows(lines: Iterable[str], name: str) -> Iterator[dict[str, str]]:
    r"""Yield the rows of a table by the names in its header; a row that does not match the header is an error.

    A header that has no comma but semicolons or tabs is read with these, and a warning says so.

    >>> list(csv_rows(["id,text\n", '1,"A gem, truly."\n'], "films.csv"))
    [{'id': '1', 'text': 'A gem, truly.'}]
    """
    longest = record_limit()
    csv.field_size_limit(longest)
    file, length = PurePath(name).name, 0
    layout = _read_layout(iter(lines), name)
    delimiter, is_other, mark = layout.delimiter, layout.is_other, _DELIMITERS[layout.delimiter]

    def counted() -> Iterator[str]:
        nonlocal length
        for line in layout.lines:
            length += len(line)
            if length > longest:
                raise too_long(f"{file}, the row that begins in line {layout.before + reader.line_num + 1}")
            yield line

    # Strict: an unclosed quote would otherwise swallow all rows up to the next quote.
    reader = csv.DictReader(counted(), delimiter=delimiter, strict=True)
    try:
        check_names(reader.fieldnames or (), file)
        for number, row in enumerate(reader, start=1):
            # csv puts extra cells under the key None, and None into missing cells.
            more, fewer = None in row, None in row.values()
            if more or fewer:
                raise TextError(
                    f"{file}, row {number} below the header: it has {'more' if more else 'fewer'} cells than the "
                    f"header has names{f', separated by {mark}s' if is_other else ''}",
                    hint=f"put quotes around a text that holds a {mark} or a line break: {_QUOTED[delimiter]}"
                    + (f"; {_NOT_OTHER[_own_delimiter(name)]}" if is_other else ""),
                )
            if is_other and number == 1:
                warnings.warn(f"{file}: cells are separated by {mark}s, as in its header", InputWarning, stacklevel=2)
            yield row
            length = 0
    except csv.Error as error:
        raise TextError(
            f"{file}, the row that begins in line {layout.before + reader.line_num + 1}: {error}",
            hint='a cell that begins with a quote has to end with one, and quotes inside it are doubled: "a ""b"" c"; '
            "or write the rows as .jsonl",
        ) from error


class _Layout(NamedTuple):
    """How the lines of a table are read: ``is_other`` if its name implies another delimiter.

    ``before`` counts the lines before the header.
    """

    delimiter: str
    is_other: bool
    before: int
    lines: Iterator[str]


def _read_layout(lines: Iterator[str], name: str) -> _Layout:
    r"""Return the delimiter of a table: that of its name, that of a line ``sep=;``, or the only one in its header.

    Spreadsheets of countries with decimal commas write semicolons.

    >>> _read_layout(iter(["id;text\n"]), "a.csv")[:3], _read_layout(iter(["sep=;\n", "text\n"]), "a.csv")[:3]
    ((';', True, 0), (';', False, 1))
    """
    first, own = next(lines, ""), _own_delimiter(name)
    if said := _SEPARATOR_LINE.fullmatch(first.strip("\r\n")):
        return _Layout(said[1], False, 1, lines)
    unquoted = _IN_QUOTES.sub("", first)
    found = [mark for mark in _DELIMITERS if mark in unquoted]
    if own not in found and len(found) > 1:
        raise TextError(
            f"{PurePath(name).name}: its header has {' and '.join(f'{_DELIMITERS[mark]}s' for mark in found)}, but no "
            f"{_DELIMITERS[own]}",
            hint="say what separates its cells in a line before the header: sep=;",
        )
    delimiter = own if own in found or not found else found[0]
    return _Layout(delimiter, delimiter != own, 0, chain([first] if first else [], lines))


def _own_delimiter(name: str) -> str:
    r"""Return the delimiter that a file name implies.

    >>> _own_delimiter("a.TSV.gz"), _own_delimiter("dump.tsv/a.csv")
    ('\t', ',')
    """
    file = PurePath(name).name.lower().removesuffix(".gz").removesuffix(".zst")
    return "\t" if file.endswith(".tsv") else ","
