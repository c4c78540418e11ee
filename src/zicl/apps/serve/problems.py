"""Errors as RFC 9457 problem documents: what was wrong, what was expected, what to do; never a path or a trace."""

from __future__ import annotations

import logging
import math
from typing import NamedTuple

from starlette.responses import Response

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
    """A kind of problem: the end of its type's name, its status and its title."""

    name: str
    status: int
    title: str


MALFORMED = ProblemKind("malformed", 400, "The request cannot be read")
UNAUTHORIZED = ProblemKind("unauthorized", 401, "A token is needed")
FOREIGN_HOST = ProblemKind("foreign-host", 403, "Asked under another name")
FOREIGN_ORIGIN = ProblemKind("foreign-origin", 403, "Asked by another site")
NOT_FOUND = ProblemKind("not-found", 404, "There is nothing here")
METHOD_NOT_ALLOWED = ProblemKind("method-not-allowed", 405, "This address is asked another way")
SLOW_BODY = ProblemKind("slow-body", 408, "The request came too slowly")
TOO_LARGE = ProblemKind("too-large", 413, "The request is too large")
NOT_JSON = ProblemKind("not-json", 415, "The request is not JSON")
INVALID = ProblemKind("invalid", 422, "The request cannot be used")
OVER_LIMIT = ProblemKind("over-limit", 422, "The request asks for too much")
INTERNAL = ProblemKind("internal", 500, "The server made a mistake")
BUSY = ProblemKind("busy", 503, "Too many texts are waiting")
OVERDUE = ProblemKind("overdue", 503, "The answer took too long")
STARTING = ProblemKind("starting", 503, "The models are being loaded")
STOPPING = ProblemKind("stopping", 503, "The server is stopping")
UNAVAILABLE = ProblemKind("unavailable", 503, "The server cannot answer this now")

# What the framework refuses by itself, in our words.
_STATUSES = {
    400: (MALFORMED, "the body is not JSON"),
    404: (NOT_FOUND, "there is nothing at this address"),
    405: (METHOD_NOT_ALLOWED, "this address does not take that method"),
}

# What each error of the library is about: the part of the request, and what is expected of it.
_ABOUT: dict[type[ZICLError], tuple[str | None, str]] = {
    SynonymError: ("labels", "a synonym for every label, one that is no other label or synonym"),
    LabelError: ("labels", "at least two labels, each with a name and words of its own"),
    TextError: ("text", "a text with at least one letter, without the characters U+0000 and U+001E"),
    UnknownNameError: (None, "one of the names that /v1/info lists"),
    RetrievalError: ("k", "a number of demonstrations that the corpus has sentences for"),
    ConfigError: (None, "settings that go together"),
    TokenizationError: ("text", "a text whose characters the model's tokens can spell"),
    PromptError: (None, "labels and a template that leave room for the text"),
    UsageError: (None, "a value this server can use"),
}
# The library's own hint names options of the command line.
_SYNONYM_HINT = (
    'give every label one, as {"name": "great", "synonyms": ["good"]}, or use the method "naive", which needs none'
)


_UNSPELLED = "the model's tokens do not give this text back as it is"


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
        index: int | None = None,
        retry_after: float | None = None,
        headers: dict[str, str] | None = None,
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
            index=index,
        )
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))

    def at(self, index: int) -> RefusedError:
        """The same, about one of several texts, if it is about a text at all."""
        if self.problem.field not in ("text", "k"):
            return self
        field = f"texts.{index}" if self.problem.field == "text" else "k"
        self.problem = self.problem.model_copy(update={"index": index, "field": field})
        return self

    @property
    def line(self) -> str:
        """The document on one line."""
        return self.problem.model_dump_json(exclude_none=True)

    def response(self) -> Response:
        """The answer."""
        return Response(self.line, self.problem.status, self.headers, MEDIA_TYPE)


def refusal(error: Exception) -> RefusedError:
    """An error as a refusal. What the caller can mend is told; anything else goes to the server's own log only."""
    if isinstance(error, RefusedError):
        return error
    for kind, (field, expected) in _ABOUT.items():
        if isinstance(error, kind):
            hint = _SYNONYM_HINT if isinstance(error, SynonymError) else error.hint
            # The error's own words name the tokenizer, which may be a path.
            detail = _UNSPELLED if isinstance(error, TokenizationError) else error.message
            return RefusedError(INVALID, detail, expected=expected, hint=hint, field=field)
    if isinstance(error, ZICLError):
        _LOG.error("a request could not be answered: %s", error)
        detail = "a model, the corpus or a word list cannot be used at the moment"
        return RefusedError(UNAVAILABLE, detail, hint="the server's log says why: ask who runs it", retry_after=60)
    _LOG.error("a request could not be answered", exc_info=error)
    return RefusedError(INTERNAL, "an unexpected error, which is in the server's log", hint="ask who runs the server")


def of_status(status: int, headers: dict[str, str] | None = None) -> RefusedError:
    """A refusal of the framework's own."""
    kind, detail = _STATUSES.get(
        status, (ProblemKind("refused", status, "The request was refused"), "it cannot be answered")
    )
    allowed = (headers or {}).get("Allow", "")
    expected = {400: "a JSON object", 405: allowed or None}.get(status)
    return RefusedError(kind, detail, expected=expected, hint="/openapi.json lists what can be asked", headers=headers)
