"""The body of a request: bounded before it is read, in size, in time and in how much is held at once."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zicl.apps.serve.problems import BUSY, NOT_JSON, SLOW_BODY, TOO_LARGE, RefusedError

# A body that is too large is let pass by, unread, for a little while: a client that is still sending
# would otherwise lose the connection before it sees why.
_PASS_BY_BYTES, _PASS_BY_SECONDS = 32 << 20, 2.0
_SECONDS = 30.0
# What the bodies of all open requests may take together, unless a single one may be larger.
_HELD_BYTES = 64 << 20


class GoneError(Exception):
    """The client left before its request was whole."""


@dataclass
class _Held:
    """How many bytes of one request are in memory."""

    size: int = 0


class Body:
    """Reads bodies of at most ``most`` bytes, those of at most ``requests`` requests and ``held`` bytes at a time.

    Those sent to ``addresses`` have to be JSON; what is sent elsewhere is refused by others, for a better reason.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        most: int,
        requests: int,
        addresses: Container[str] = (),
        seconds: float = _SECONDS,
        held: int = _HELD_BYTES,
    ) -> None:
        self._addresses = addresses
        self._app, self._most, self._requests, self._seconds = app, most, requests, seconds
        self._room = max(held, most)
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request whose body is there; anything too large or too slow is refused."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        self._open += 1
        held = _Held()
        try:
            declared = scope["method"] == "POST" and scope["path"] in self._addresses
            body = await self._checked(Headers(scope=scope), receive, held, declared=declared)
            await self._app(scope, _replayed(body, receive), send)
        except RefusedError as refused:
            await refused.response()(scope, receive, send)
        except GoneError:
            pass
        finally:
            self._open -= 1
            self._room += held.size

    async def _checked(self, headers: Headers, receive: Receive, held: _Held, *, declared: bool) -> bytes:
        if self._open > self._requests:
            raise RefusedError(BUSY, f"{self._requests} requests are open", hint="try again later", retry_after=1)
        if declared and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RefusedError(
                NOT_JSON,
                "the body is not declared as JSON",
                expected="Content-Type: application/json",
                hint="send a JSON object with that header",
            )
        if int(headers.get("content-length", "0")) > self._most:
            await self._pass_by(receive)
            raise self._too_large()
        try:
            return await asyncio.wait_for(self._read(receive, held), self._seconds)
        except TimeoutError as error:
            detail = f"the body was not there after {self._seconds:g} seconds"
            raise RefusedError(SLOW_BODY, detail, hint="send it faster, or less of it") from error

    async def _read(self, receive: Receive, held: _Held) -> bytes:
        """The body, counted as it comes: it need not say how long it is."""
        parts = list[bytes]()
        while True:
            message = await _next(receive)
            parts.append(message.get("body", b""))
            held.size += len(parts[-1])
            self._room -= len(parts[-1])
            more = message.get("more_body", False)
            if held.size > self._most:
                if more:
                    await self._pass_by(receive)
                raise self._too_large()
            if self._room < 0:
                raise RefusedError(
                    BUSY, "the open requests are too large together", hint="try again later", retry_after=1
                )
            if not more:
                return b"".join(parts)

    async def _pass_by(self, receive: Receive) -> None:
        size = 0
        try:
            async with asyncio.timeout(_PASS_BY_SECONDS):
                while size < _PASS_BY_BYTES:
                    message = await _next(receive)
                    size += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            return

    def _too_large(self) -> RefusedError:
        return RefusedError(
            TOO_LARGE,
            "the body is too large",
            expected=f"at most {self._most:,} bytes",
            hint="send fewer or shorter texts, in several requests",
            headers={"Connection": "close"},
        )


async def _next(receive: Receive) -> Message:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise GoneError
    return message


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body again, in one piece, then whatever comes: the news that the client left."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
