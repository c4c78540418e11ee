"""Say where a body stops being JSON that can be read, for what the framework refuses without a place."""

from __future__ import annotations

import json
import re

from zicl._util.strict_json import RepeatedKeyError
from zicl.apps.serve.problems import INVALID, RefusedError, malformed

# Far fewer than what Python's parser gives up at.
_DEPTH = 100
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_LONG_NUMBER = re.compile(r"\d{4301}")


def not_json(error: BaseException, body: bytes) -> RefusedError:
    """Return the refusal of a body that could not be read, or not be used, because of ``error``.

    >>> not_json(RecursionError(), b"[" * 5000).problem.detail
    'the body is not JSON: line 1, column 101: lists and objects are nested too deeply'
    """
    if isinstance(error, RepeatedKeyError):
        return RefusedError(INVALID, str(error), expected="each key once", hint="leave one of them out")
    if isinstance(error, UnicodeDecodeError):
        # What comes before it could be read.
        before = body[: error.start].decode(error.encoding, "replace")
        return malformed(before, len(before), f"a byte that is not {error.encoding.upper()}")
    text = body.decode(json.detect_encoding(body), "replace")
    if isinstance(error, RecursionError):
        return malformed(text, _too_deep(text), "lists and objects are nested too deeply")
    long = _LONG_NUMBER.search(text)
    if long is not None:
        return malformed(text, long.start(), "a number with too many digits")
    return malformed(text, 0, "it cannot be read")


def _too_deep(text: str) -> int:
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > _DEPTH:
            return found.start()
    return 0
