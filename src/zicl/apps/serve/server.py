"""Run the server process: a socket, signals, and a shutdown in which every request gets an answer."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp

from zicl.apps.serve.app import make_app
from zicl.apps.serve.body import Connection
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.page import load_page
from zicl.apps.serve.security import Access
from zicl.apps.serve.service import Load, Service
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.classifier import ZICLClassifier


# -- The server process: a socket, signals, and an end in which every request gets an answer.


# After a signal, what is running is finished, which its deadline bounds; then there are so many seconds to send it.
_LAST_SECONDS = 15


class Server(uvicorn.Server):
    """uvicorn, which also tells the queue when it is to stop."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Remember the loop that the queue belongs to."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn's, but the signal is not raised again at the end: stopping is not a failure."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """What waits is told at once; uvicorn then lets the running requests end."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._service.queue.stop)
        super().handle_exit(sig, frame)


def check_free(access: Access) -> None:
    """The port can be listened on: known before anything long is done first."""
    listen(access)[0].close()


def listen(access: Access) -> tuple[socket.socket, Access]:
    """A listening socket, and the access with the port it really has (0 takes any free one)."""
    family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
    try:
        found = socket.create_server((access.host, access.port), family=family, backlog=2048)
    except OSError as error:
        raise UsageError(
            f"{access.host} port {access.port} cannot be listened on: {error.strerror or error}",
            hint="choose another --port (0 takes any free one) or --host",
        ) from error
    return found, replace(access, port=found.getsockname()[1])


def address(access: Access) -> str:
    """The server's address as a browser takes it.

    >>> address(Access("127.0.0.1", 8000))
    'http://127.0.0.1:8000/'
    """
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(access.host, access.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{access.port}/"


def settings(app: ASGIApp, deadline: float) -> uvicorn.Config:
    """How uvicorn runs the application: nothing told of the server, nothing believed of a proxy."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(deadline) + _LAST_SECONDS,
    )


def serve(
    load: Load,
    access: Access,
    limits: RequestLimits,
    *,
    listening: Callable[[str], None] = lambda _: None,
    ready: Callable[[ZICLClassifier], None] = lambda _: None,
) -> bool:
    """Serve until a signal comes. Listens first and loads then; an error in loading ends it and is raised.

    False if the signal came while the models were loaded: the thread that does so cannot be stopped.
    """
    page = load_page()
    found, access = listen(access)
    service = Service(load, limits)
    server = Server(settings(make_app(service, access, page), limits.deadline), service)

    def loaded() -> None:
        if service.failure is not None:
            server.should_exit = True
        elif not service.queue.stopping:
            ready(service.engine.classifier)

    service.on_loaded = loaded
    with found:
        listening(address(access))
        server.run(sockets=[found])
    if service.failure is not None:
        raise service.failure
    return not service.loading
