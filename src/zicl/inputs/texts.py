"""Check texts before anything is computed, with errors that name the row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zicl._util.counts import counted
from zicl._util.printable import has_half_character
from zicl.exceptions import TextError
from zicl.inputs.pair import Pair, Text


def check_texts(values: Iterable[object]) -> list[Text]:
    """Return the texts as a list, or raise an error that names the first unusable one.

    >>> check_texts(["fine", ("a premise", "a hypothesis")])
    ['fine', Pair(first='a premise', second='a hypothesis')]
    """
    if isinstance(values, str):
        raise TextError(
            f"one text was given where a list was expected: {values[:60]!r}", hint="put it in a list: [text]"
        )
    if is_table(values):
        raise TextError("a table was given where a column of texts was expected", hint='name the column: df["text"]')
    return [_text_or_pair(value, f"row {number}") for number, value in enumerate(column_values(values))]


def is_table(values: object) -> bool:
    """Return whether these are several named columns: a frame, an Arrow table, a data set or a dictionary.

    >>> is_table({"text": ["fine"]}), is_table(["fine"])
    (True, False)
    """
    # Of the class: a lazy frame would be computed for its names.
    kind = type(values)
    return isinstance(values, Mapping) or hasattr(kind, "columns") or hasattr(kind, "column_names")


def column_values(values: Iterable[object]) -> Iterable[object]:
    """Return the values of a column; those of an Arrow array as Python's, where it would yield scalars of its own."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def _text_or_pair(value: object, where: str) -> Text:
    if isinstance(value, Pair):
        value = (value.first, value.second)
    if not isinstance(value, tuple):
        return check_text(value, where)
    if len(value) != 2:
        raise TextError(f"{where} holds {counted(len(value), 'text')}", hint="give one text, or a pair of two")
    return check_pair(value[0], value[1], where)


def check_pair(
    first: object, second: object, where: str, names: tuple[str, str] = ("first text", "second text")
) -> Pair:
    """Return two texts as a pair that can be classified; ``names`` are what errors call them."""
    return Pair(
        *(check_text(text, f"{where}, {name},").strip() for text, name in zip((first, second), names, strict=True))
    )


def check_columns(record: Mapping[str, object], text: str, pair: str | None, where: str) -> Text:
    """Return the text of a record, or the pair of two of its columns."""
    if not pair:
        return check_text(record[text], f"{where}, column {text!r},")
    return check_pair(record[text], record[pair], where, (f"column {text!r}", f"column {pair!r}"))


def is_empty(value: object) -> bool:
    """Return whether a cell holds no text.

    >>> is_empty(None), is_empty(" "), is_empty("0")
    (True, True, False)
    """
    return value is None or (isinstance(value, str) and not value.strip())


def cell_text(value: object) -> str:
    """Return a cell as text: a label may be a number or a boolean in a workbook or a .parquet file.

    >>> cell_text(None), cell_text(0), cell_text("yes")
    ('', '0', 'yes')
    """
    return "" if value is None else str(value)


def check_text(value: object, where: str) -> str:
    """Return ``value`` as a text that can be classified."""
    if not isinstance(value, str):
        raise TextError(
            f"{where} holds {type(value).__name__} ({value!r}), not text",
            hint="drop rows without text, or turn the values into text first",
        )
    if is_empty(value):
        raise TextError(f"{where} is empty", hint="drop rows without text")
    if "\x1e" in value:
        raise TextError(f"{where} holds the control character U+001E", hint="remove it from the text")
    if "\0" in value:
        raise TextError(f"{where} holds a NUL byte", hint="the data may be binary or wrongly decoded: read it as UTF-8")
    if has_half_character(value):
        raise TextError(f"{where} holds a broken character (a lone surrogate)", hint="read the data as UTF-8")
    # numpy.str_ is a subclass of str.
    return str(value)
