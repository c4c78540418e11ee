"""Tables of cells parted by commas or tabs: a row that does not fit its header is an error, never taken in part."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from zicl.exceptions import TextError

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
