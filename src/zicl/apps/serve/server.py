"""Run the server process: a socket, connections, signals, and a shutdown in which every request gets an answer."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from zicl.apps.serve.app import make_app
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.page import load_page
from zicl.apps.serve.problems import protocol_refusal
from zicl.apps.serve.security import Access
from zicl.apps.serve.service import Load, Service
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.classifier import ZICLClassifier

_IDLE_SECONDS = 30.0
# After a signal, running requests are finished, which the deadline bounds; then this many seconds to send the answers.
_SEND_SECONDS = 15


def serve(
    load: Load,
    access: Access,
    limits: RequestLimits,
    *,
    listening: Callable[[str], None] = lambda _: None,
    ready: Callable[[ZICLClassifier], None] = lambda _: None,
) -> bool:
    """Serve until a signal. Listen first and load then; an error while loading ends the server and is raised.

    Return False if the signal came while the models were being loaded, in a thread that cannot be stopped.
    """
    page = load_page()
    listener, access = listen(access)
    service = Service(load, limits)
    server = Server(uvicorn_config(make_app(service, access, page), limits.deadline), service)

    def on_loaded() -> None:
        if service.failure is not None:
            server.should_exit = True
        elif not service.queue.stopping:
            ready(service.engine.classifier)

    service.on_loaded = on_loaded
    with listener:
        listening(address(access))
        server.run(sockets=[listener])
    if service.failure is not None:
        raise service.failure
    return not service.loading


def check_free(access: Access) -> None:
    """Check that the port is free, before anything slow is done."""
    listen(access)[0].close()


def listen(access: Access) -> tuple[socket.socket, Access]:
    """Return a listening socket, and the access with its actual port (port 0 takes any free one)."""
    family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
    try:
        listener = socket.create_server((access.host, access.port), family=family, backlog=2048)
    except OSError as error:
        raise UsageError(
            f"{access.host} port {access.port} cannot be listened on: {error.strerror or error}",
            hint="choose another --port (0 takes any free one) or --host",
        ) from error
    return listener, replace(access, port=listener.getsockname()[1])


def address(access: Access) -> str:
    """Return the server's address for a browser.

    >>> address(Access("127.0.0.1", 8000))
    'http://127.0.0.1:8000/'
    """
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(access.host, access.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{access.port}/"


def uvicorn_config(app: ASGIApp, deadline: float) -> uvicorn.Config:
    """Return uvicorn's configuration: no logs, no header that names the server, no trust in a proxy's headers."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(deadline) + _SEND_SECONDS,
    )


class Server(uvicorn.Server):
    """uvicorn's server, which also stops the queue on a signal."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Keep the event loop that the queue belongs to."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals like uvicorn, but do not raise them again at the end: stopping is no failure."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Refuse what waits in the queue; uvicorn then lets running requests finish."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._service.queue.stop)
        super().handle_exit(sig, frame)


class Connection(H11Protocol):
    """uvicorn's connection, closed if the head of a request does not arrive in time, or an answer is not read.

    uvicorn limits the time between two requests, but not the time until the first one.
    """

    seconds = _IDLE_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request, and send small packets at once."""
        # asyncio gives a stream protocol a stream, and uvicorn expects one.
        super().connection_made(cast(asyncio.Transport, transport))
        # Head and body are two writes: the second would wait, often 40 ms, for the acknowledgement of the first.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timer when the head is complete; a part of it does not restart the timer."""
        if self._refused:
            return
        super().data_received(data)
        if not self._refused and self.cycle is not None and not self.cycle.response_complete:
            self._stop_head_timer()
        elif self._head_timer is None:
            self._start_head_timer()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: what asks for another protocol gets an ordinary answer, and no package would change that."""

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP request with a problem document, and end the connection.

        What the client still sends is discarded: it would otherwise lose the connection before it reads the answer.
        """
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        self._refused = True
        if self.cycle is not None:
            # An application that waits for the rest of a body gets no more of it.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # Called where the error is caught.
        answer = protocol_refusal(sys.exc_info()[1]).response()
        head = h11.Response(
            status_code=answer.status_code, headers=answer.raw_headers, reason=STATUS_PHRASES[answer.status_code]
        )
        is_head = self.cycle is not None and not self.cycle.response_complete and self.scope["method"] == "HEAD"
        body = b"" if is_head else bytes(answer.body)
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both timers."""
        self._stop_head_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that does not read its answer."""
        super().pause_writing()
        self._start_read_timer()

    def resume_writing(self) -> None:
        """Stop waiting: the client reads."""
        super().resume_writing()
        self._stop_read_timer()

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.seconds, self.transport.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _start_read_timer(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._read_timer = self.loop.call_later(self.seconds, self._check_progress, unread)

    def _check_progress(self, unread_before: int) -> None:
        # A slow reader may take any time as long as it reads. Not close(), which waits until all is sent.
        if self.transport.get_write_buffer_size() < unread_before:
            self._start_read_timer()
        else:
            self.transport.abort()

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
