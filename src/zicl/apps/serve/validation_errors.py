"""What pydantic finds wrong with a request, in words: where it is, what it is, and what was expected there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pydantic import BaseModel

from zicl._util.validation import model_at
from zicl.apps.serve.problems import INVALID, MALFORMED, RefusedError

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
class FieldError:
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


def field_errors(errors: Sequence[Any], model: type[BaseModel] | None) -> list[FieldError]:
    """Every error once; of a value that may be of several types, what is wrong with the one that was meant."""
    found: list[FieldError] = []
    for item, group in groupby(errors, key=lambda error: _item(error["loc"])):
        found += _meant(item, list(group), model)
    return list(dict.fromkeys(found))


def _item(place: Sequence[int | str]) -> str:
    """The value that errors are about together: a label is one value, whatever is wrong inside it."""
    return field(place[:3] if place[1:2] == ("labels",) else place[:2])


def _meant(item: str, errors: list[Any], model: type[BaseModel] | None) -> list[FieldError]:
    if len(errors) > 1:
        other = [error for error in errors if error["type"] not in _TYPES or _place(error) != item]
        if not other:
            expected = _CHOICES.get(item.partition(".")[0], "another type")
            return [FieldError(item, f"it is not {expected}", expected)]
        errors = other
    return [FieldError(_place(error), *_said(error, model)) for error in errors]


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


# -- A request that cannot be read or used, as one refusal that names all that is wrong with it.


_SHOWN_PROBLEMS = 5
_KINDS = {list: "a list", str: "a string", bool: "a truth value", int: "a number", float: "a number"}


def invalid_request(errors: Sequence[Any], model: type[BaseModel] | None = None, body: Any = None) -> RefusedError:
    """All errors as one refusal. What was sent is never repeated: it may be long, and is known to the sender.

    ``model`` is what the address takes, ``body`` what was sent: its text, where this is not JSON.
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return _not_json(first, body if isinstance(body, str) else "")
    if tuple(first["loc"]) == ("body",) and first["type"] != "value_error":
        return _no_object(first, model)
    found = field_errors(errors, model)
    more = f"; and {len(found) - _SHOWN_PROBLEMS} more" if len(found) > _SHOWN_PROBLEMS else ""
    expected = found[0].expected
    if first["type"] == "value_error":
        # The one rule of a whole request: see schema.ClassifyRequest.
        expected = 'either "text", a string, or "texts", a list of strings'
    return RefusedError(
        INVALID,
        "; ".join(map(str, found[:_SHOWN_PROBLEMS])) + more,
        expected=expected,
        hint="correct what is named, or leave it out: the server has its own settings",
        field=found[0].place or None,
    )


def _not_json(error: Any, text: str) -> RefusedError:
    """The place is told, the text is not."""
    before = text[: int(error["loc"][-1])]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return RefusedError(
        MALFORMED,
        f"the body is not JSON: line {line}, column {column}: {error['ctx']['error']}",
        expected="a JSON object",
        hint="check quotes and commas there",
    )


def _no_object(error: Any, model: type[BaseModel] | None) -> RefusedError:
    found = "empty" if error["type"] == "missing" else _KINDS.get(type(error["input"]), "something else")
    single = model is not None and "text" in model.model_fields
    example = '{"text": "…"}' if single else '{"labels": ["…", "…"]}'
    return RefusedError(
        INVALID,
        f"the body is {found}, and no JSON object",
        expected=f"a JSON object, for example {example}",
        hint="/openapi.json lists its keys",
    )
