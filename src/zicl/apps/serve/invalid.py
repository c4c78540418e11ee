"""A request that cannot be read or used, as one refusal that names all that is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from zicl.apps.serve.problems import INVALID, MALFORMED, RefusedError
from zicl.apps.serve.wrong import wrong

_SHOWN = 5
_KINDS = {list: "a list", str: "a string", bool: "a truth value", int: "a number", float: "a number"}


def invalid(errors: Sequence[Any], model: type[BaseModel] | None = None, body: Any = None) -> RefusedError:
    """All errors as one refusal. What was sent is never repeated: it may be long, and is known to the sender.

    ``model`` is what the address takes, ``body`` what was sent: its text, where this is not JSON.
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return _not_json(first, body if isinstance(body, str) else "")
    if tuple(first["loc"]) == ("body",) and first["type"] != "value_error":
        return _no_object(first, model)
    found = wrong(errors, model)
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    expected = found[0].expected
    if first["type"] == "value_error":
        # The one rule of a whole request: see schema.ClassifyRequest.
        expected = 'either "text", a string, or "texts", a list of strings'
    return RefusedError(
        INVALID,
        "; ".join(map(str, found[:_SHOWN])) + more,
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
