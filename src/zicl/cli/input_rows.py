"""The rows that zicl classify labels: from a file, from the command line, or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from zicl._util.counts import counted
from zicl.cli.console import print_status
from zicl.exceptions import TextError, UsageError
from zicl.inputs.files import detect_format, split_sheet
from zicl.inputs.tables import InputRow, read_rows
from zicl.inputs.texts import check_text


def input_file(texts: Sequence[str] | None, file: str | None) -> str | None:
    """Return the file to label: that of --file, or an argument that is a file; ``-`` is standard input.

    None if the arguments are texts. The name of a file is never taken for a text.
    """
    if file is not None:
        if texts:
            raise UsageError("texts and --file were both given", hint="give one of them")
        return file
    if not texts:
        if sys.stdin.isatty():
            raise UsageError(
                "no text was given", hint="zicl classify 'some text' …, --file texts.csv, or - for standard input"
            )
        return "-"
    if len(texts) == 1:
        if texts[0] == "-" or _names(Path.is_file, texts[0]):
            return texts[0]
        if _names(Path.is_dir, texts[0]):
            raise UsageError(
                f"{texts[0]} is a folder, and a text or a file of texts was expected",
                hint=f"name a file in it; if that is a text to label: echo {texts[0]!r} | zicl classify - …",
            )
        if _seems_a_file(texts[0]):
            raise TextError(
                f"there is no file {texts[0]}",
                hint=f"check the path; if that is a text to label: echo {texts[0]!r} | zicl classify - …",
            )
        return None
    if files := [text for text in texts if _names(Path.is_file, text)]:
        raise UsageError(
            f"{files[0]} is a file, and several arguments are texts to label", hint=f"label one file: --file {files[0]}"
        )
    return None


def read_input(
    texts: Sequence[str] | None,
    file: str | None,
    text_column: str,
    *,
    id_column: str | None = None,
    pair_column: str | None = None,
    options_column: str | None = None,
    skip_empty: bool = False,
) -> list[InputRow]:
    """Return the rows of a file, or one for each text."""
    columns = {"id_column": id_column, "pair_column": pair_column, "options_column": options_column}
    if file is not None:
        rows = read_rows(
            file,
            text_column=text_column,
            id_column=id_column,
            pair_column=pair_column,
            options_column=options_column,
            skip_empty=skip_empty,
        )
        if empty := sum(row.empty for row in rows):
            print_status(
                f"without a text: {empty:,} of {counted(len(rows), 'row')}, kept in the output without a label"
            )
        return rows
    if named := [name for name, column in columns.items() if column is not None]:
        raise UsageError(
            f"--{named[0].replace('_', '-')} names a column, and the texts come from no file",
            hint="leave it out, or put the texts into a file: --file texts.csv",
        )
    return [
        InputRow(str(n), check_text(text, f"text {n}"), {"id": str(n), "text": text})
        for n, text in enumerate(texts or (), start=1)
    ]


def check_is_text(text: str) -> None:
    """Refuse the name of a file where one text is expected."""
    if _names(Path.is_file, text):
        raise UsageError(f"{text} is a file, and a text was expected", hint="zicl classify labels the rows of a file")


def _names(is_kind: Callable[[Path], bool], text: str) -> bool:
    """Return whether a text is the path of a file or a folder that is there."""
    try:
        return is_kind(Path(split_sheet(text)[0]))
    except (OSError, ValueError):
        # Too long for a path, or with a NUL: a text.
        return False


def _seems_a_file(text: str) -> bool:
    """Return whether a text is a word that ends like the name of a table.

    >>> _seems_a_file("reviews.csv"), _seems_a_file("I lost reviews.csv"), _seems_a_file("The end.")
    (True, False, False)
    """
    return len(text.split()) == 1 and detect_format(text) not in (None, "txt")
