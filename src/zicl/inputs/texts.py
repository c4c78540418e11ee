"""Checking texts before anything is computed, with errors that name the row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zicl.exceptions import TextError
from zicl.inputs.pair import SEPARATOR, halves, is_pair, join


def check_texts(values: Iterable[object]) -> list[str]:
    """The texts as a list, or an error that names the first that cannot be used.

    >>> check_texts(["fine"])
    ['fine']
    """
    if isinstance(values, str):
        raise TextError(
            f"one text was given where a list was expected: {values[:60]!r}", hint="put it in a list: [text]"
        )
    if hasattr(values, "columns"):
        raise TextError("a table was given where a column of texts was expected", hint='name the column: df["text"]')
    return [_text_or_pair(value, f"row {number}") for number, value in enumerate(values)]


def _text_or_pair(value: object, where: str) -> str:
    if isinstance(value, str) and is_pair(value):
        # It was joined before.
        value = halves(value)
    if not isinstance(value, tuple):
        return check_text(value, where)
    if len(value) != 2:
        raise TextError(f"{where} holds {len(value)} texts", hint="give one text, or a pair of two")
    return check_pair(value[0], value[1], where)


def check_pair(
    first: object, second: object, where: str, names: tuple[str, str] = ("first text", "second text")
) -> str:
    """Two texts as a pair that can be classified; ``names`` tell them apart in an error."""
    return join(*(check_text(text, f"{where}, {name},") for text, name in zip((first, second), names, strict=True)))


def check_columns(record: Mapping[str, object], text: str, pair: str | None, where: str) -> str:
    """The text of a record, or the pair of two of its columns."""
    if not pair:
        return check_text(record[text], f"{where}, column {text!r},")
    return check_pair(record[text], record[pair], where, (f"column {text!r}", f"column {pair!r}"))


def check_text(value: object, where: str) -> str:
    """``value`` as a text that can be classified."""
    if not isinstance(value, str):
        raise TextError(
            f"{where} holds {type(value).__name__} ({value!r}), not text",
            hint="drop rows without text, or turn the values into text first",
        )
    if not value.strip():
        raise TextError(f"{where} is empty", hint="drop rows without text")
    if SEPARATOR in value:
        raise TextError(f"{where} holds the control character U+001E", hint="take it out: zicl parts pairs with it")
    if "\0" in value:
        raise TextError(f"{where} holds a NUL byte", hint="the data may be binary or wrongly decoded: read it as UTF-8")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TextError(
            f"{where} holds a broken character (a lone surrogate)", hint="read the data as UTF-8"
        ) from error
    # What comes from an array is a class of its own.
    return str(value)
