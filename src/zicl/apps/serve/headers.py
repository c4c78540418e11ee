"""Around every answer: headers that keep it where it belongs, and a count of it."""

from __future__ import annotations

import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zicl.apps.serve.metrics import Metrics

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_POLICY = "default-src 'none'; frame-ancestors 'none'"


class Around:
    """Adds the headers, and counts requests by route and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; its answer comes back through here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.monotonic(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update({name: value for name, value in _ALWAYS.items() if name not in headers})
                headers.setdefault("Content-Security-Policy", _POLICY)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            # The route's pattern, not what was asked: the counters stay few whatever clients ask for.
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.requests.labels(route, status or "left").inc()
            self._metrics.seconds.labels(route).observe(time.monotonic() - begun)
