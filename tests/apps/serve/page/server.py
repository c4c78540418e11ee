"""A server for the tests of the page: the whole application in a thread."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from zicl.apps.serve.app import make_app
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.page import load_page
from zicl.apps.serve.security import Access
from zicl.apps.serve.server import address, listen, settings
from zicl.apps.serve.service import Service


@contextmanager
def running(load: Callable[[], Any], *, token: str | None = None) -> Iterator[str]:
    """The address of a server that has loaded its classifier."""
    found, access = listen(Access(port=0, token=token))
    service = Service(load, RequestLimits())
    server, loaded = uvicorn.Server(settings(make_app(service, access, load_page()), 60)), threading.Event()
    service.on_loaded = loaded.set
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
    with found:
        thread.start()
        try:
            assert loaded.wait(60)
            assert service.failure is None, service.failure
            yield address(access)
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def until(ask: Callable[[], Any], seconds: float = 20) -> Any:
    """What ``ask`` gives once it gives something true."""
    end = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.03)
    return found


def ask(address: str, **body: Any) -> list[dict[str, Any]]:
    """The results of /v1/classify, as a program gets them."""
    request = urllib.request.Request(
        f"{address}v1/classify", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["results"]
