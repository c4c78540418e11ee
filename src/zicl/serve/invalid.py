"""What pydantic finds wrong with a request, in words, and where in the request it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zicl.serve.problems import INVALID, MALFORMED, RefusedError

_SHOWN = 5
# Names that stand inside a label; any other name behind the first is pydantic's own for a choice of types.
_INNER = ("name", "words", "synonyms")


def invalid(errors: Sequence[Any]) -> RefusedError:
    """All errors as one refusal. What was sent is never repeated: it may be long, and is known to the sender."""
    if any(error["type"] == "json_invalid" for error in errors):
        return RefusedError(MALFORMED, "the body is not JSON", expected="a JSON object", hint="check quotes and commas")
    told = list(dict.fromkeys(_told(error) for error in errors))
    more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return RefusedError(
        INVALID,
        "; ".join(told[:_SHOWN]) + more,
        expected="a request as /openapi.json describes it",
        hint="correct what is named, or leave it out: the server has its own settings",
        field=field(errors[0]["loc"]) or None,
    )


def field(place: Sequence[int | str]) -> str:
    """The part of a request an error is about.

    >>> field(("body", "labels", 1, "LabelSpec", "name"))
    'labels.1.name'
    """
    first, *rest = [*place[1:], ""][:-1] or [""]
    return ".".join(str(part) for part in (first, *(p for p in rest if isinstance(p, int) or p in _INNER)))


def _told(error: Any) -> str:
    where = field(error["loc"])
    what = "there is no such key" if error["type"] == "extra_forbidden" else error["msg"].removeprefix("Value error, ")
    # An unknown key is the sender's own word: shortened.
    return f"{where[:60]}: {what}" if where else what
