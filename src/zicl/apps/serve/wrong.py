"""What pydantic finds wrong with a request, in words: where it is, what it is, and what was expected there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pydantic import BaseModel

from zicl._util.validation import model_at

# Names that stand inside a label; any other name behind the first is pydantic's own for a choice of types.
_INNER = ("name", "words", "synonyms")
# An unknown key is the sender's own word: shortened.
_SHOWN = 60
_NUMBER = "a whole number"
_TYPES = {
    "string_type": "a string",
    "int_type": _NUMBER,
    "int_parsing": _NUMBER,
    "int_parsing_size": _NUMBER,
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
# What takes several types.
_CHOICES = {"labels": "a name, or an object with a name", "template": "a name, or a list of two lines"}
_COUNTED = {"texts": "text", "labels": "label", "synonyms": "synonym", "template": "line"}
_SAID = {
    "missing": ("it is missing", "a value: there is no default"),
    "too_short": ("{given}, and at least {min_length} are needed", "at least {min_length} {name}s"),
    "too_long": ("too many were given", "at most {max_length} {name}s"),
    "string_too_short": ("it is empty", "at least one character"),
    "string_too_long": ("it is too long", "at most {max_length} characters"),
    "greater_than_equal": ("it is too small", "at least {ge}"),
    "less_than_equal": ("it is too large", "at most {le}"),
    "literal_error": ("it is not {expected}", "{expected}"),
}


@dataclass(frozen=True)
class Wrong:
    """What is wrong at a ``place`` of the request."""

    place: str
    what: str
    expected: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


def field(place: Sequence[int | str]) -> str:
    """The part of a request an error is about.

    >>> field(("body", "labels", 1, "LabelSpec", "name"))
    'labels.1.name'
    """
    first, *rest = place[1:] or [""]
    return ".".join(str(part) for part in (first, *(p for p in rest if isinstance(p, int) or p in _INNER)))[:_SHOWN]


def wrong(errors: Sequence[Any], model: type[BaseModel] | None) -> list[Wrong]:
    """Every error once; of a value that may be of several types, what is wrong with the one that was meant."""
    found: list[Wrong] = []
    for item, group in groupby(errors, key=lambda error: _item(error["loc"])):
        found += _meant(item, list(group), model)
    return list(dict.fromkeys(found))


def _item(place: Sequence[int | str]) -> str:
    """The value that errors are about together: a label is one value, whatever is wrong inside it."""
    return field(place[:3] if place[1:2] == ("labels",) else place[:2])


def _meant(item: str, errors: list[Any], model: type[BaseModel] | None) -> list[Wrong]:
    if len(errors) > 1:
        other = [error for error in errors if error["type"] not in _TYPES or _place(error) != item]
        if not other:
            expected = _CHOICES.get(item.partition(".")[0], "another type")
            return [Wrong(item, f"it is not {expected}", expected)]
        errors = other
    return [Wrong(_place(error), *_said(error, model)) for error in errors]


def _place(error: Any) -> str:
    found = field(error["loc"])
    inside = error["type"] == "extra_forbidden" and len(error["loc"]) > 2
    return f"{found}.{error['loc'][-1]}"[:_SHOWN] if inside else found


def _said(error: Any, model: type[BaseModel] | None) -> tuple[str, str]:
    """What is wrong, and what was expected."""
    kind, ctx = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(error["loc"][1:], model)
    if kind in _TYPES:
        return f"it is not {_TYPES[kind]}", _TYPES[kind]
    if kind not in _SAID:
        return str(error["msg"]).removeprefix("Value error, "), "a value as /openapi.json describes it"
    name = _counted(error)
    known = {**ctx, "name": name, "given": _given(ctx.get("actual_length"), name)}
    what, expected = _SAID[kind]
    return what.format_map(known), expected.format_map(known)


def _counted(error: Any) -> str:
    return next((_COUNTED[part] for part in reversed(error["loc"]) if part in _COUNTED), "value")


def _given(count: int | None, name: str) -> str:
    return f"{count or 'no'} {name}s were given" if (count or 0) > 1 else f"{count or 'no'} {name} was given"


def _unknown_key(place: Sequence[int | str], model: type[BaseModel] | None) -> tuple[str, str]:
    keys = [] if model is None else list(model_at(model, place).model_fields)
    close = difflib.get_close_matches(str(place[-1])[:_SHOWN], keys, n=1)
    near = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no such key{near}", f"only the keys {', '.join(keys)}"
