"""Word pydantic's errors for users: where a value is, what is wrong with it, and what was expected there.

``field_errors`` words the errors of any model: settings (``config_error``) and requests to the server alike.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

from zicl.exceptions import ConfigError, UsageError

Place = tuple[int | str, ...]

_UNKNOWN_KEY = "extra_forbidden"
_WHOLE_NUMBER, _NUMBER, _BOOLEAN = "a whole number", "a number", "true or false"
# What each of pydantic's errors of type expects.
_TYPES = {
    "string_type": "a string",
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_parsing_size": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "a finite number",
    "bool_type": _BOOLEAN,
    "bool_parsing": _BOOLEAN,
    "list_type": "a list",
    "tuple_type": "a list",
    "path_type": "a path",
    "dict_type": "an object with keys",
    "model_type": "an object with keys",
    "model_attributes_type": "an object with keys",
}
# Other errors: what is wrong, and what is expected, filled in from the error's context.
_PROBLEMS = {
    "missing": ("it is missing", "a value (there is no default)"),
    "too_short": ("too few were given", "at least {min_length}"),
    "too_long": ("too many were given", "at most {max_length}"),
    "string_too_short": ("it is too short", "{min_length} or more characters"),
    "string_too_long": ("it is too long", "at most {max_length} characters"),
    "string_pattern_mismatch": ("it has another form", "a string of the form {pattern}"),
    "greater_than": ("it is too small", "more than {gt}"),
    "greater_than_equal": ("it is too small", "at least {ge}"),
    "less_than": ("it is too large", "less than {lt}"),
    "less_than_equal": ("it is too large", "at most {le}"),
    "literal_error": ("it is not {expected}", "{expected}"),
}
# pydantic puts the names of a union's members into the place of an error; models go by their class.
_PLAIN_MEMBERS = ("str", "int", "float", "bool", "constrained-str")
# A key that the user made up may be long.
_COMPARED_CHARACTERS = 60
_SHOWN_CHARACTERS, _SHOWN_ERRORS = 120, 8


@dataclass(frozen=True)
class FieldError:
    """What is wrong at a place of the input; ``expected`` is empty where the problem says it all.

    ``keys`` are the known keys beside an unknown one, ``cause`` the error that a validator raised.
    """

    place: Place
    problem: str
    expected: str = ""
    keys: tuple[str, ...] = ()
    given: Any = field(default=None, compare=False)
    cause: Exception | None = field(default=None, compare=False)

    @property
    def path(self) -> str:
        """The place as one word.

        >>> FieldError(("labels", 1, "name"), "it is missing").path
        'labels.1.name'
        """
        return ".".join(str(part)[:_SHOWN_CHARACTERS] for part in self.place)


class _Located(NamedTuple):
    """An error with its place, the union whose member it is about (if one), and the model at the place."""

    error: Any
    place: Place
    union: Place | None
    model: type[BaseModel] | None


def field_errors(errors: Sequence[Any], model: type[BaseModel] | None) -> list[FieldError]:
    """Return every error once; of a value that may have several types, only the errors of the type that was meant.

    ``errors`` are pydantic's, as ``ValidationError.errors()`` gives them, and ``model`` is what was validated.
    """
    located = [_locate(error, model) for error in errors]
    result: list[FieldError] = []
    for union, group in groupby(located, key=lambda each: each.union):
        items = list(group)
        if union is not None and len(items) > 1:
            meant = [each for each in items if each.error["type"] not in _TYPES or each.place != union]
            if not meant:
                expected = " or ".join(dict.fromkeys(_TYPES[each.error["type"]] for each in items))
                result.append(FieldError(union, f"it is not {expected}", expected, given=items[0].error["input"]))
                continue
            items = meant
        result += [_describe(each) for each in items]
    return list(dict.fromkeys(result))


def _locate(error: Any, model: type[BaseModel] | None) -> _Located:
    place: list[int | str] = []
    union: Place | None = None
    annotation: Any = model
    for number, part in enumerate(error["loc"]):
        unknown_key = error["type"] == _UNKNOWN_KEY and number == len(error["loc"]) - 1
        models = _models(annotation)
        if models and part in models[0].model_fields:
            annotation = models[0].model_fields[str(part)].annotation
        elif not unknown_key and isinstance(part, str):
            members = [each for each in models if each.__name__ == part]
            if members or "[" in part or part in _PLAIN_MEMBERS:
                union, annotation = tuple(place), members[0] if members else annotation
                continue
        place.append(part)
    return _Located(error, tuple(place), union, next(iter(_models(annotation)), None))


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in _models(each)]


def _describe(located: _Located) -> FieldError:
    error, place = located.error, located.place
    kind, context, given = error["type"], error.get("ctx", {}), error.get("input")
    if kind == _UNKNOWN_KEY:
        keys = tuple(located.model.model_fields) if located.model is not None else ()
        return FieldError(place, "there is no such key" + _suggestion(place[-1], keys), keys=keys)
    if kind in _TYPES:
        return FieldError(place, f"it is not {_TYPES[kind]}", _TYPES[kind], given=given)
    if kind not in _PROBLEMS:
        # A validator's message says what it expects.
        return FieldError(
            place, str(error["msg"]).removeprefix("Value error, "), given=given, cause=context.get("error")
        )
    problem, expected = (text.format_map(context) for text in _PROBLEMS[kind])
    if kind == "literal_error":
        problem += _suggestion(given, re.findall(r"'([^']+)'", expected))
    return FieldError(place, problem, expected, given=given)


def _suggestion(given: object, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(given)[:_COMPARED_CHARACTERS], known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def config_error(
    error: ValidationError, model: type[BaseModel], where: str = "", options: Mapping[str, str] | None = None
) -> ConfigError:
    """Return one error that names every wrong key and value; its hint lists the keys beside an unknown one.

    ``options`` maps the keys that came from options of a command to the names of these options.
    """
    names, errors = options or {}, field_errors(error.errors(), model)
    for each in errors:
        if isinstance(each.cause, UsageError):
            return ConfigError(where + _prefix(each, names) + each.cause.message, hint=each.cause.hint)
    message = "; ".join(_prefix(each, names) + _sentence(each) for each in errors[:_SHOWN_ERRORS])
    if len(errors) > _SHOWN_ERRORS:
        message += f"; and {len(errors) - _SHOWN_ERRORS} more"
    if all(each.place and each.place[0] in names for each in errors):
        # All values came from options: the file and its keys would mislead.
        return ConfigError(message)
    keys = next((each.keys for each in errors if each.keys), ())
    # A table's name is its header, not a key.
    hint = f"its keys are: {', '.join(key for key in keys if key != 'name')}" if keys else None
    return ConfigError(where + message, hint=hint)


def _sentence(error: FieldError) -> str:
    if error.keys or error.problem == _PROBLEMS["missing"][0]:
        return error.problem
    expected = f", expected {error.expected}" if error.expected and error.expected not in error.problem else ""
    return f"{error.problem}{expected} (given: {_shown(error.given)})"


def _shown(value: Any) -> str:
    """Return a value as errors quote it; a stranger's may be megabytes."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _prefix(error: FieldError, options: Mapping[str, str]) -> str:
    if error.place and error.place[0] in options:
        return f"{options[str(error.place[0])]}: "
    return f"{error.path}: " if error.place else ""
