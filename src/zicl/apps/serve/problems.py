"""Errors as RFC 9457 problem documents: what was wrong, what was expected, what to do; never a path or a trace."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel
from starlette.responses import Response

from zicl._util.printable import has_half_character
from zicl._util.validation import FieldError, field_errors
from zicl.apps.serve.schema import Problem
from zicl.exceptions import (
    ConfigError,
    LabelError,
    PromptError,
    RetrievalError,
    SynonymError,
    TextError,
    TokenizationError,
    UnknownNameError,
    UsageError,
    ZICLError,
)

MEDIA_TYPE = "application/problem+json"
_LOG = logging.getLogger("zicl.apps.serve")


class ProblemKind(NamedTuple):
    """A kind of problem: the end of its type, its status and its title."""

    name: str
    status: int
    title: str


MALFORMED = ProblemKind("malformed", 400, "The request cannot be read")
NOT_HTTP = ProblemKind("not-http", 400, "The request cannot be read")
UNAUTHORIZED = ProblemKind("unauthorized", 401, "A token is needed")
FOREIGN_HOST = ProblemKind("foreign-host", 403, "The request is for another host")
FOREIGN_ORIGIN = ProblemKind("foreign-origin", 403, "The request comes from another site")
NOT_FOUND = ProblemKind("not-found", 404, "There is nothing here")
METHOD_NOT_ALLOWED = ProblemKind("method-not-allowed", 405, "This address takes another method")
SLOW_BODY = ProblemKind("slow-body", 408, "The request came too slowly")
TOO_LARGE = ProblemKind("too-large", 413, "The request is too large")
NOT_JSON = ProblemKind("not-json", 415, "The request is not JSON")
COMPRESSED = ProblemKind("compressed", 415, "The request is compressed")
INVALID = ProblemKind("invalid", 422, "The request cannot be used")
OVER_LIMIT = ProblemKind("over-limit", 422, "The request is over a limit")
LARGE_HEAD = ProblemKind("large-head", 431, "The request is too large")
INTERNAL = ProblemKind("internal", 500, "The server made a mistake")
BUSY = ProblemKind("busy", 503, "Too many texts are waiting")
OVERDUE = ProblemKind("overdue", 503, "The answer took too long")
STARTING = ProblemKind("starting", 503, "The models are being loaded")
STOPPING = ProblemKind("stopping", 503, "The server is stopping")
UNAVAILABLE = ProblemKind("unavailable", 503, "The server cannot answer this now")


class RefusedError(Exception):
    """A request that is answered with a problem document."""

    def __init__(
        self,
        kind: ProblemKind,
        detail: str,
        *,
        expected: str | None = None,
        hint: str | None = None,
        field: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(
            type=f"urn:zicl:problem:{kind.name}",
            title=kind.title,
            status=kind.status,
            detail=detail,
            expected=expected,
            hint=hint,
            field=field,
        )
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))

    def at(self, index: int) -> RefusedError:
        """Name the text it is about by its index in the request, if it is about a text."""
        if self.problem.field in ("text", "k"):
            field = f"texts.{index}" if self.problem.field == "text" else "k"
            self.problem = self.problem.model_copy(update={"index": index, "field": field})
        return self

    @property
    def line(self) -> str:
        """The document on one line."""
        return self.problem.model_dump_json(exclude_none=True)

    def response(self) -> Response:
        """Return the document as an answer."""
        return Response(self.line, self.problem.status, self.headers, MEDIA_TYPE)


# For each error of the library: the part of the request it is about, and what is expected there.
_LIBRARY_ERRORS: dict[type[ZICLError], tuple[str | None, str]] = {
    SynonymError: ("labels", "a synonym for every label, one that is no other label or synonym"),
    LabelError: ("labels", "at least two labels with different names and words"),
    TextError: ("text", "a text with at least one letter, without the characters U+0000 and U+001E"),
    UnknownNameError: (None, "one of the names that /v1/info lists"),
    RetrievalError: ("k", "a number of demonstrations that the corpus has sentences for"),
    ConfigError: (None, "settings that go together"),
    TokenizationError: ("text", "a text whose characters the model's tokens can spell"),
    PromptError: (None, "labels and a template that leave room for the text"),
    UsageError: (None, "a value this server can use"),
}
# The library's hint names options of the command line.
_SYNONYM_HINT = (
    'give every label one, as {"name": "great", "synonyms": ["good"]}, or use the method "naive", which needs none'
)


def refusal(error: Exception) -> RefusedError:
    """Return an error as a refusal; what the client cannot correct is only logged."""
    if isinstance(error, RefusedError):
        return error
    for kind, (field, expected) in _LIBRARY_ERRORS.items():
        if isinstance(error, kind):
            hint = _SYNONYM_HINT if isinstance(error, SynonymError) else error.hint
            detail = error.message
            if isinstance(error, TokenizationError):
                # The library's message names the tokenizer, which may be a path.
                detail = "the model's tokens do not decode to this text"
            return RefusedError(INVALID, detail, expected=expected, hint=hint, field=field)
    if isinstance(error, ZICLError):
        _LOG.error("a request could not be answered: %s", error)
        detail = "a model, the corpus or a word list cannot be used at the moment"
        return RefusedError(
            UNAVAILABLE, detail, hint="the server's log says why: ask its administrator", retry_after=60
        )
    _LOG.error("a request could not be answered", exc_info=error)
    return RefusedError(INTERNAL, "an unexpected error, see the server's log", hint="ask the server's administrator")


# Refusals of the framework.
_STATUSES = {
    400: (MALFORMED, "the body is not JSON"),
    404: (NOT_FOUND, "there is nothing at this address"),
    405: (METHOD_NOT_ALLOWED, "this address does not take that method"),
}


def status_refusal(status: int, headers: Mapping[str, str]) -> RefusedError:
    """Return a refusal of the framework with our words."""
    other = ProblemKind("refused", status, "The request was refused"), "it cannot be answered"
    kind, detail = _STATUSES.get(status, other)
    expected = {400: "a JSON object", 405: headers.get("Allow")}.get(status)
    return RefusedError(kind, detail, expected=expected, hint="/openapi.json lists all addresses", headers=headers)


def protocol_refusal(error: BaseException | None) -> RefusedError:
    """Return the refusal of bytes that are no HTTP request; the connection cannot be used any more."""
    large = getattr(error, "error_status_hint", 400) == 431
    kind, expected = (LARGE_HEAD, "at most 16 KiB") if large else (NOT_HTTP, "a request line and headers of HTTP/1.1")
    # Without the bytes themselves: they may hold a token.
    reason = str(error).partition(": bytearray")[0]
    detail = "the head of the request is too large" if large else f"the request is not HTTP: {reason}"
    hint = "send fewer or shorter headers, and texts in the body" if large else "use an HTTP client"
    return RefusedError(kind, detail, expected=expected, hint=hint, headers={"Connection": "close"})


# An unknown key is chosen by the client and may be long.
_SHOWN_CHARACTERS, _SHOWN_ERRORS = 60, 5
_JSON_TYPES = {
    list: "a list",
    str: "a string",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def invalid_request(errors: Sequence[Any], model: type[BaseModel] | None = None, body: Any = None) -> RefusedError:
    """Return all errors of a request as one refusal. Values are not repeated: the client knows them.

    ``model`` is what the address takes, ``body`` what was sent: its text, if that is not JSON.
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return malformed(body if isinstance(body, str) else "", int(first["loc"][-1]), first["ctx"]["error"])
    if any(error["type"] == "string_unicode" for error in errors) and (broken := _broken_text(body)):
        return broken
    if tuple(first["loc"]) == ("body",) and first["type"] != "value_error":
        return _not_an_object(first, model)
    # The first part of a place says where in the request it is: in its body or in its path.
    wrong = field_errors([{**error, "loc": error["loc"][1:]} for error in errors], model)
    more = f"; and {len(wrong) - _SHOWN_ERRORS} more" if len(wrong) > _SHOWN_ERRORS else ""
    return RefusedError(
        INVALID,
        "; ".join(f"{_path(each)}: {each.problem}" if each.place else each.problem for each in wrong[:_SHOWN_ERRORS])
        + more,
        expected=_expected(wrong[0]),
        hint="correct the values named, or leave them out to use the server's settings",
        field=_path(wrong[0]) or None,
    )


def _path(error: FieldError) -> str:
    return error.path[:_SHOWN_CHARACTERS]


def _expected(error: FieldError) -> str:
    if error.keys:
        return f"only the keys {', '.join(error.keys)}"
    if not error.place:
        # The only rule about several keys: see schema.ClassifyRequest.
        return 'either "text", a string, or "texts", a list of strings'
    return error.expected or "a value as /openapi.json describes it"


def malformed(before: str, place: int, reason: str) -> RefusedError:
    """Return the refusal of a body that is not JSON; ``place`` is that of the error in the text."""
    before = before[:place]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return RefusedError(
        MALFORMED,
        f"the body is not JSON: line {line}, column {column}: {reason}",
        expected="a JSON object in UTF-8",
        hint="check what is there: quotes, commas and the encoding",
    )


def _broken_text(body: Any) -> RefusedError | None:
    """Return the refusal of the first text or key of a body that holds half of a character, if one does."""
    waiting: list[tuple[tuple[int | str, ...], Any]] = [((), body)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str) and has_half_character(value):
            return _broken(_joined(path), path)
        if isinstance(value, dict):
            for key in value:
                if has_half_character(key):
                    shown = key[:_SHOWN_CHARACTERS].encode("ascii", "backslashreplace").decode()
                    return _broken(f'the key "{shown}"' + (f" of {_joined(path)}" if path else ""), path)
            waiting += reversed([((*path, key), inner) for key, inner in value.items()])
        elif isinstance(value, list):
            waiting += reversed([((*path, number), inner) for number, inner in enumerate(value)])
    return None


def _joined(path: tuple[int | str, ...]) -> str:
    return ".".join(map(str, path))[:_SHOWN_CHARACTERS]


def _broken(what: str, path: tuple[int | str, ...]) -> RefusedError:
    return RefusedError(
        INVALID,
        f"{what} holds a broken character (a lone surrogate)",
        expected="characters: of \\ud800 to \\udfff only pairs",
        hint="read the data as UTF-8",
        field=_joined(path) or None,
    )


def _not_an_object(error: Any, model: type[BaseModel] | None) -> RefusedError:
    kind = "empty" if error["type"] == "missing" else _JSON_TYPES.get(type(error["input"]), "something else")
    examples = {"text": '{"text": "…"}', "texts": '{"texts": ["…", "…"]}'}
    fields = () if model is None else model.model_fields
    example = next((shown for name, shown in examples.items() if name in fields), '{"labels": ["…", "…"]}')
    return RefusedError(
        INVALID,
        f"the body is {kind}, and no JSON object",
        expected=f"a JSON object, for example {example}",
        hint="/openapi.json lists its keys",
    )
