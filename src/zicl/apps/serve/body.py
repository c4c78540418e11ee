"""The body of a request: bounded before it is read, in size, in time and in how much is held at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, cast

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from zicl.apps.serve.problems import BUSY, NOT_JSON, SLOW_BODY, TOO_LARGE, RefusedError

# A body that is too large is let pass by, unread, for a little while: a client that is still sending
# would otherwise lose the connection before it sees why.
_PASS_BY_BYTES, _PASS_BY_SECONDS = 32 << 20, 2.0
_SECONDS = 30.0
# What the bodies of all open requests may take together, unless a single one may be larger.
_HELD_BYTES = 64 << 20


class ClientGoneError(Exception):
    """The client left before its request was whole."""


@dataclass
class _BufferedBytes:
    """How many bytes of one request are in memory."""

    size: int = 0


class RequestBody:
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
        held = _BufferedBytes()
        try:
            declared = scope["method"] == "POST" and scope["path"] in self._addresses
            body = await self._checked(Headers(scope=scope), receive, held, declared=declared)
            await self._app(scope, _replayed(body, receive), send)
        except RefusedError as refused:
            await refused.response()(scope, receive, send)
        except ClientGoneError:
            pass
        finally:
            self._open -= 1
            self._room += held.size

    async def _checked(self, headers: Headers, receive: Receive, held: _BufferedBytes, *, declared: bool) -> bytes:
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

    async def _read(self, receive: Receive, held: _BufferedBytes) -> bytes:
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
        raise ClientGoneError
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


# -- A connection: answers leave at once, and it has some seconds to bring a request or to read its answer.


# uvicorn itself bounds the time between requests, but not the time until one is asked.
_IDLE_SECONDS = 30.0


class Connection(H11Protocol):
    """uvicorn's own, which is closed if a request's head does not come in time, or an answer is not read."""

    seconds = _IDLE_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._patience: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        # asyncio gives a stream protocol a stream, and uvicorn asks for one.
        super().connection_made(cast(asyncio.Transport, transport))
        # Head and body are written apart: the body would wait, often 40 ms, until the client says that it has the head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop waiting once a head is whole; a part of one does not prolong the time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._done()
        elif self._patience is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._done()
        self._unwatch()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not take what it asked for."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """It takes it."""
        super().resume_writing()
        self._unwatch()

    def _watch(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(self.seconds, self._look, left)

    def _look(self, before: int) -> None:
        # A slow reader is waited for as long as it reads at all. To close would mean to wait until all is sent.
        if self.transport.get_write_buffer_size() < before:
            self._watch()
        else:
            self.transport.abort()

    def _unwatch(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _wait(self) -> None:
        self._patience = self.loop.call_later(self.seconds, self.transport.close)

    def _done(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
