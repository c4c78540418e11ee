"""Read the body of a request before the application runs, with limits on its size, its time and the total size."""

from __future__ import annotations

import asyncio
from collections.abc import Container

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zicl.apps.serve.problems import BUSY, COMPRESSED, NOT_JSON, SLOW_BODY, TOO_LARGE, RefusedError

_SECONDS = 30.0
# Limit for the bodies of all open requests together, unless a single one may be larger.
_TOTAL_BYTES = 64 << 20
# Read on and discard this much of a body that is too large: a client that is still sending would otherwise lose the
# connection before it reads the answer. (Starlette's RequestBodyLimitMiddleware does not.)
_DISCARD_BYTES, _DISCARD_SECONDS = 32 << 20, 2.0


class _DisconnectedError(Exception):
    """The client left before its body was complete."""


class RequestBody:
    """Read bodies of at most ``max_bytes``, for at most ``max_requests`` at a time and ``max_total`` bytes together.

    Those sent to ``addresses`` have to be JSON as it is; the application refuses other addresses for a better reason.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_bytes: int,
        max_requests: int,
        addresses: Container[str] = (),
        seconds: float = _SECONDS,
        max_total: int = _TOTAL_BYTES,
    ) -> None:
        self._app, self._addresses, self._seconds = app, addresses, seconds
        self._max_bytes, self._max_requests = max_bytes, max_requests
        self._free_bytes = max(max_total, max_bytes)
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with its body; refuse a body that is too large or too slow."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        self._open += 1
        parts: list[bytes] = []
        try:
            self._check_head(scope)
            body = await self._read_in_time(Headers(scope=scope), receive, parts)
            await self._app(scope, _replay(body, receive), send)
        except RefusedError as refused:
            await refused.response()(scope, receive, send)
        except _DisconnectedError:
            pass
        finally:
            self._open -= 1
            self._free_bytes += sum(map(len, parts))

    def _check_head(self, scope: Scope) -> None:
        if self._open > self._max_requests:
            raise RefusedError(BUSY, f"{self._max_requests} requests are open", hint="try again later", retry_after=1)
        if scope["method"] != "POST" or scope["path"] not in self._addresses:
            return
        headers = Headers(scope=scope)
        declared = headers.get("content-type", "").partition(";")[0].strip().lower()
        if declared != "application/json":
            raise RefusedError(
                NOT_JSON,
                "the body is not declared as JSON",
                expected="Content-Type: application/json",
                hint="send a JSON object with that header",
            )
        if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise RefusedError(
                COMPRESSED,
                "the body is declared as compressed",
                expected="no Content-Encoding",
                hint="send the JSON as it is, without that header",
                headers={"Accept-Encoding": "identity"},
            )

    async def _read_in_time(self, headers: Headers, receive: Receive, parts: list[bytes]) -> bytes:
        if int(headers.get("content-length", "0")) > self._max_bytes:
            await _discard(receive)
            raise self._too_large()
        try:
            return await asyncio.wait_for(self._read(receive, parts), self._seconds)
        except TimeoutError as error:
            detail = f"the body was not complete after {self._seconds:g} seconds"
            raise RefusedError(SLOW_BODY, detail, hint="send it faster, or less of it") from error

    async def _read(self, receive: Receive, parts: list[bytes]) -> bytes:
        # Counted as it arrives: a client need not declare the length.
        size = 0
        while True:
            message = await _next_message(receive)
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._free_bytes -= len(parts[-1])
            more = message.get("more_body", False)
            if size > self._max_bytes:
                if more:
                    await _discard(receive)
                raise self._too_large()
            if self._free_bytes < 0:
                raise RefusedError(
                    BUSY, "the open requests are too large together", hint="try again later", retry_after=1
                )
            if not more:
                return b"".join(parts)

    def _too_large(self) -> RefusedError:
        return RefusedError(
            TOO_LARGE,
            "the body is too large",
            expected=f"at most {self._max_bytes:,} bytes",
            hint="send fewer or shorter texts, in several requests",
            headers={"Connection": "close"},
        )


async def _discard(receive: Receive) -> None:
    size = 0
    try:
        async with asyncio.timeout(_DISCARD_SECONDS):
            while size < _DISCARD_BYTES:
                message = await _next_message(receive)
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


async def _next_message(receive: Receive) -> Message:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _DisconnectedError
    return message


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives the body as one message, and then what else arrives: the disconnection."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
