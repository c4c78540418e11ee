"""Read the rows of a sheet of an Excel workbook, and write rows as a workbook.

The first row with anything in it is the header. Numbers, booleans, dates and times stay what they are, text that looks
like one stays text, and errors like #N/A are empty cells; a formula has the value that was last computed for it.
"""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from zicl._util.process import require_extra
from zicl.exceptions import TextError, UsageError, first_line
from zicl.inputs.files import RECORD_LIMIT, check_names, display_name, record_limit, split_sheet, too_long

_BATCH = 256
# What Excel allows in a sheet. A file may claim more.
_MAX_ROWS, _MAX_COLUMNS, _MAX_CELL = 1_048_576, 16_384, 32_767
# So many empty rows between others are a stray value far below them. A sheet that begins with so many is an empty one.
_MAX_EMPTY = 10_000
# A workbook may unpack to this many times the limit of a record, and a large part of it to so many times its size:
# text is packed to a tenth, and a sheet of equal cells to a fiftieth.
_UNPACKED, _RATIO = 32, 200
# What another format that is called .xlsx begins with: an old workbook, or one with a password.
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
# Written as _xHHHH_: characters that XML has none for, and what would be read as one of them.
_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9a-fA-F]{4}_)")
_ESCAPE = re.compile("_x(?![dD][89a-fA-F])([0-9a-fA-F]{4})_")
_FORMULA = ("=", "+", "-", "@")
# Larger numbers lose digits in a spreadsheet.
_LARGEST = 10**15
_FIRST_YEAR = 1900
# Where rows wait for their workbook as JSON, which has no dates: each is a table with one of these keys. A datetime is
# a date, too, and comes first.
_DATE_KINDS: Mapping[str, Any] = {"zicl:datetime": datetime, "zicl:date": date, "zicl:time": time}


# -- reading -----------------------------------------------------------------------------------------


def excel_rows(path: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a sheet by the names in its header; ``book.xlsx#Sheet`` names one of several sheets.

    Empty rows below the last one with a value are left out.
    """
    require_extra("excel", "reading .xlsx files", "openpyxl")
    file, sheet = split_sheet(path)
    name = display_name(path)
    _check_size(file, display_name(file))
    rows = _cells(file, sheet, name)
    header = next((row for row in rows if row), [])
    names = ["" if value is None else str(value).strip() for value in header]
    check_names([each for each in names if each], name)
    empty = 0
    for number, row in enumerate(rows, start=1):
        if not row:
            empty += 1
            continue
        if empty > _MAX_EMPTY:
            raise TextError(
                f"{name}, row {number} below the header: {empty:,} empty rows are above it",
                hint="clear what is in that row, or remove the empty ones",
            )
        yield from ({each: None for each in names if each} for _ in range(empty))
        empty = 0
        unnamed = [n for n, value in enumerate(row) if value is not None and not (n < len(names) and names[n])]
        if unnamed:
            raise TextError(
                f"{name}, row {number} below the header: it has a value in column {_letter(unnamed[0])}, which has no "
                "name in the header",
                hint="the header is the first row with anything in it: name the column there, or remove it",
            )
        yield {each: row[n] if n < len(row) else None for n, each in enumerate(names) if each}


def _check_size(path: str, name: str) -> None:
    """Check how large a workbook is when unpacked, before any of it is."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        with Path(path).open("rb") as stream:
            old = stream.read(4) == _OLD_WORKBOOK
        raise TextError(
            f"{name} is not an .xlsx workbook: "
            + ("an old .xls, or one with a password" if old else first_line(error)),
            hint="open it in a spreadsheet program, and save it as .xlsx"
            + (", without a password" if old else "; it may be truncated or misnamed"),
        ) from error
    limit = record_limit()
    bombs = [part for part in parts if part.file_size > limit and part.file_size > _RATIO * part.compress_size]
    if bombs or sum(part.file_size for part in parts) > _UNPACKED * limit:
        raise TextError(
            f"{name} unpacks to {sum(part.file_size for part in parts) >> 20:,} MB"
            + (f", {bombs[0].filename} to more than {_RATIO} times its size" if bombs else ""),
            hint="save the sheet as .csv, which is read row by row"
            + ("" if bombs else f"; or raise the limit: {RECORD_LIMIT}=64"),
        )


def _cells(path: str, sheet: str | None, name: str) -> Iterator[list[Any]]:
    """Yield the values of every row of the sheet, without the empty cells at its end."""
    # A library reads what a stranger wrote: whatever it stumbles over is a damaged file.
    try:
        with warnings.catch_warnings():
            # It warns of styles and rules that it does not know.
            warnings.simplefilter("ignore")
            from openpyxl import load_workbook

            book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            rows, number = _rows(_find_sheet(book, sheet, name)), 0
            while batch := _next(rows, _BATCH):
                for row in batch:
                    number += 1
                    yield _values(row, name, number)
        finally:
            book.close()
    except (TextError, MemoryError):
        raise
    except Exception as error:
        raise TextError(
            f"{name} is not a valid .xlsx workbook: {first_line(error)}",
            hint="open it in a spreadsheet program, and save it again as .xlsx",
        ) from error


def _rows(sheet: Any) -> Iterator[Sequence[Any]]:
    # The size that a file states for a sheet may be wrong, and rows would be cut.
    sheet.reset_dimensions()
    yield from sheet.iter_rows()


def _next(rows: Iterator[Sequence[Any]], count: int) -> list[Sequence[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(islice(rows, count))


def _find_sheet(book: Any, wanted: str | None, name: str) -> Any:
    """Return the sheet of this name, or the only visible one that has a value."""
    listed = ", ".join(repr(sheet.title) for sheet in book.worksheets)
    if wanted is not None:
        found = next((sheet for sheet in book.worksheets if sheet.title == wanted), None)
        if found is None:
            raise TextError(f"{name}: there is no such sheet", hint=f"there are: {listed}")
        return found
    filled = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible" and _has_value(sheet)]
    if len(filled) == 1:
        return filled[0]
    if filled:
        raise TextError(
            f"{name} has {len(filled)} sheets with rows: {', '.join(repr(sheet.title) for sheet in filled)}",
            hint=f"name one of them behind a #: '{name}#{filled[0].title}'",
        )
    raise TextError(
        f"{name} has no visible sheet with a value in its first {_MAX_EMPTY:,} rows",
        hint=f"check the file; its sheets are: {listed}",
    )


def _has_value(sheet: Any) -> bool:
    rows = islice(_rows(sheet), _MAX_EMPTY)
    while batch := _next(rows, _BATCH):
        if any(cell.value is not None for row in batch for cell in row):
            return True
    return False


def _values(row: Sequence[Any], name: str, number: int) -> list[Any]:
    if number > _MAX_ROWS:
        raise TextError(f"{name} has more than {_MAX_ROWS:,} rows", hint="it is damaged: save it again as .xlsx")
    # The type tells an error from a text like #N/A.
    values = [None if cell.data_type == "e" else _value(cell.value) for cell in row]
    while values and values[-1] is None:
        values.pop()
    if sum(len(value) for value in values if isinstance(value, str)) > record_limit():
        raise too_long(f"{name}, row {number}")
    return values


def _value(value: Any) -> Any:
    r"""Return the value of a cell: text, a number, a boolean, a date, a time or None.

    >>> _value(7.0), str(_value(datetime(2024, 5, 1))), _value(""), _value("one_x000D_two")
    (7, '2024-05-01', None, 'one\rtwo')
    """
    if isinstance(value, str):
        return None if not value else _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        return int(value)
    if isinstance(value, datetime):
        return value.date() if value.time() == time() else value
    return value if value is None or isinstance(value, bool | int | float | date | time) else str(value)


def _letter(column: int) -> str:
    from openpyxl.utils import get_column_letter

    letter: str = get_column_letter(column + 1)
    return letter


# -- writing -----------------------------------------------------------------------------------------


def check_workbook_columns(columns: Sequence[str], path: Path) -> None:
    """Check that a sheet can have so many columns."""
    if len(columns) > _MAX_COLUMNS:
        raise UsageError(
            f"{path}: a sheet has at most {_MAX_COLUMNS:,} columns, and {len(columns):,} would be written",
            hint="write .csv, .jsonl or .parquet, or fewer columns",
        )


def check_workbook_fits(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Check that a sheet can hold these rows: Excel cuts longer texts, and reads no further rows."""
    if len(rows) >= _MAX_ROWS:
        raise UsageError(
            f"{path}: a sheet holds {_MAX_ROWS - 1:,} rows below its header, and there are {len(rows):,}",
            hint="write .csv, .jsonl or .parquet",
        )
    for number, row in enumerate(rows, start=1):
        for name, value in row.items():
            length = _length(value)
            if length > _MAX_CELL:
                raise UsageError(
                    f"{path}: a cell holds {_MAX_CELL:,} characters, and row {number}, column {name!r}, has {length:,}",
                    hint="write .csv, .jsonl or .parquet, or cut the text",
                )


def write_workbook(path: Path, columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as the only sheet of a workbook; no text becomes a formula, and none is cut."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("zicl")
    sheet.freeze_panes = "A2"

    def cell(value: Any) -> Any:
        made = WriteOnlyCell(sheet, _cell_value(value))
        if isinstance(made.value, str):
            # Else a text that begins with = is a formula, and one like #N/A an error.
            made.data_type = "s"
            if made.value.startswith(_FORMULA):
                # And again when somebody edits it.
                made.quotePrefix = True
        return made

    sheet.append([cell(name) for name in columns])
    for record in records:
        sheet.append([cell(record.get(name)) for name in columns])
    book.save(path)


def _cell_value(value: Any) -> Any:
    """Return what a cell holds: None, a boolean, a number or a date that it can hold, or text."""
    if value is None or isinstance(value, bool) or _is_date(value):
        return value
    if isinstance(value, int | float) and abs(value) < _LARGEST:
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def _is_date(value: Any) -> bool:
    """Return whether a value is a date or a time of a sheet: these have no time zone, and begin in 1900."""
    if isinstance(value, time):
        return value.tzinfo is None
    return isinstance(value, date) and value.year >= _FIRST_YEAR and getattr(value, "tzinfo", None) is None


def pack_dates(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its dates and times in a form that JSON has, and that ``unpack_dates`` reads.

    >>> unpack_dates(pack_dates({"day": date(2024, 5, 1), "text": "2024-05-01"}))
    {'day': datetime.date(2024, 5, 1), 'text': '2024-05-01'}
    """
    return {name: _packed(value) if _is_date(value) else value for name, value in record.items()}


def _packed(value: Any) -> dict[str, str]:
    kind = next(name for name, each in _DATE_KINDS.items() if isinstance(value, each))
    return {kind: value.isoformat()}


def unpack_dates(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record that was packed."""
    return {name: _unpacked(value) for name, value in record.items()}


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        kind, text = next(iter(value.items()))
        with suppress(KeyError, TypeError, ValueError):
            return _DATE_KINDS[kind].fromisoformat(text)
    return value


def _length(value: Any) -> int:
    """Return the number of characters of a cell as Excel counts them, 2 for those outside the basic plane."""
    return len(str(_cell_value(value)).encode("utf-16-le")) // 2
