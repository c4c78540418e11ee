"""Parse JSON that may come from a stranger."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from zicl._util.printable import has_half_character

# Python's own functions (repr, json.dumps, a comparison) fail on values of a few hundred levels.
DEEPEST = 64
TOO_DEEP = "nested too deeply"


class RepeatedKeyError(ValueError):
    """An object has two keys of one name."""


def parse_json(text: str) -> Any:
    """Parse JSON; two keys of one name, and nesting that Python could not handle later, are a ``ValueError``.

    >>> parse_json('{"a": [1]}')
    {'a': [1]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    zicl._util.strict_json.RepeatedKeyError: the key 'a' occurs twice
    """
    try:
        value = json.loads(text, object_pairs_hook=distinct_keys)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    except json.JSONDecodeError as error:
        # The parser counts lines of what it was given, which may be one line of a file.
        raise ValueError(f"{error.msg}, character {error.pos + 1}") from error
    if text.count("[") + text.count("{") > DEEPEST and is_deep(value):
        raise ValueError(TOO_DEEP)
    return value


def json_has_half_character(text: str, value: Any) -> bool:
    r"""Return whether the value of a JSON text has half of a character in it, which no file could hold.

    >>> [json_has_half_character(text, parse_json(text)) for text in (r'{"\ud83d": 1}', r'"\ud83d\ude00"')]
    [True, False]
    """
    if r"\ud" not in text.lower():
        return False
    return has_half_character(json.dumps(value, ensure_ascii=False))


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys and values, as ``object_pairs_hook`` of ``json.loads``; refuse a second value."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise RepeatedKeyError(f"the key {twice[:60]!r} occurs twice")
    return values


def is_deep(value: Any) -> bool:
    """Return whether a value has too many levels. It goes level by level: a recursion would fail on such a value."""
    level = [value]
    for _ in range(DEEPEST):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
