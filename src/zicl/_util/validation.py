"""What pydantic finds wrong with a user's settings, in words for that user."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from zicl.exceptions import ConfigError, UsageError

# How pydantic calls a key that there is not.
_UNKNOWN = "extra_forbidden"


def config_error(
    error: ValidationError, model: type[BaseModel], where: str = "", options: Mapping[str, str] | None = None
) -> ConfigError:
    """Every wrong key or value in one message; the hint lists the keys of the table in which there is no such key.

    ``options`` are the keys that were given as options of a command, with the names of these.
    """
    found, given = error.errors(), options or {}
    for item in found:
        own = item.get("ctx", {}).get("error")
        if isinstance(own, UsageError):
            return ConfigError(where + _prefix(item["loc"], given) + own.message, hint=own.hint)
    message = "; ".join(dict.fromkeys(_prefix(item["loc"], given) + _problem(item, model) for item in found))
    if all(item["loc"] and item["loc"][0] in given for item in found):
        # No table is wrong: its file and its keys would mislead.
        return ConfigError(message)
    unknown = next((item for item in found if item["type"] == _UNKNOWN), None)
    if unknown is None:
        return ConfigError(where + message)
    return ConfigError(where + message, hint=f"its keys are: {', '.join(_fields(model_at(model, unknown['loc'])))}")


def _problem(item: Any, model: type[BaseModel]) -> str:
    if item["type"] != _UNKNOWN:
        expected = re.findall(r"'([^']+)'", item.get("ctx", {}).get("expected", ""))
        close = difflib.get_close_matches(str(item["input"]), expected, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        return f"{item['msg'].removeprefix('Value error, ')} (given: {item['input']!r}){meant}"
    close = difflib.get_close_matches(str(item["loc"][-1]), _fields(model_at(model, item["loc"])), n=1)
    return "there is no such key" + (f"; did you mean {close[0]!r}?" if close else "")


def _prefix(place: Sequence[int | str], given: Mapping[str, str]) -> str:
    if place and place[0] in given:
        return f"{given[str(place[0])]}: "
    return f"{'.'.join(str(part) for part in place)}: " if place else ""


def model_at(model: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel]:
    """The settings in which the last part of ``place`` stands; keys of mappings and names of unions are passed over."""
    for part in place[:-1]:
        field = model.model_fields.get(str(part))
        if field is not None:
            model = next(iter(_models(field.annotation)), model)
    return model


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in _models(each)]


def _fields(model: type[BaseModel]) -> list[str]:
    return [name for name in model.model_fields if name != "name"]
