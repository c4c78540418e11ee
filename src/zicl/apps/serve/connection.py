"""A connection: answers leave at once, and it has some seconds to bring a request or to read its answer.

Else idle ones would pile up, and answers that nobody reads.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

# uvicorn itself bounds the time between requests, but not the time until one is asked.
_SECONDS = 30.0


class Connection(H11Protocol):
    """uvicorn's own, which is closed if a request's head does not come in time, or an answer is not read."""

    seconds = _SECONDS

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
