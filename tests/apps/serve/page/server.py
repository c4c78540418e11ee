"""A server for the tests of the page: the application in a thread."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.waiting import WAIT_SECONDS
from zicl.apps.serve.app import make_app
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.page import load_page
from zicl.apps.serve.security import Access
from zicl.apps.serve.server import address, listen, uvicorn_config
from zicl.apps.serve.service import Service


@contextmanager
def running(load: Callable[[], Any], *, token: str | None = None, limits: RequestLimits | None = None) -> Iterator[str]:
    """Give the address of a server that has loaded its classifier."""
    listener, access = listen(Access(port=0, token=token))
    service = Service(load, limits or RequestLimits())
    server, loaded = (
        uvicorn.Server(uvicorn_config(make_app(service, access, load_page()), WAIT_SECONDS)),
        threading.Event(),
    )
    service.on_loaded = loaded.set
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    with listener:
        thread.start()
        try:
            assert loaded.wait(WAIT_SECONDS)
            assert service.failure is None, service.failure
            yield address(access)
        finally:
            server.should_exit = True
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive()


def ask(address: str, **body: Any) -> list[dict[str, Any]]:
    """Return the results of /v1/classify, as a program gets them."""
    request = urllib.request.Request(
        f"{address}v1/classify", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["results"]
