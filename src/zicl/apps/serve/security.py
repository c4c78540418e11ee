"""Who may use the server: no other site through a visitor's browser, and only clients with the token, if one is set."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zicl.apps.serve.page import Page
from zicl.apps.serve.problems import FOREIGN_HOST, FOREIGN_ORIGIN, UNAUTHORIZED, RefusedError
from zicl.apps.serve.queue import ServerMetrics
from zicl.exceptions import UsageError

# Addresses that need no token.
_OPEN = ("/healthz", "/readyz")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_TRUSTED = "zicl.trusted_host"


@dataclass(frozen=True)
class Access:
    """Where the server listens, and the token it requires; an address that other machines reach needs one."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None

    def __post_init__(self) -> None:
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
            raise UsageError("the token is empty or holds characters that no header can", hint="use letters and digits")
        if self.token is None and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} can be reached from other machines, and no token was given",
                hint="--token SECRET or the variable ZICL_TOKEN; or leave out --host to serve this machine alone",
            )

    @property
    def trusted_hosts(self) -> list[str]:
        """The host names that a Host header may hold; any, if other machines can reach the address, with a token."""
        if not is_loopback(self.host):
            return ["*"]
        host = f"[{self.host}]" if ":" in self.host else self.host.lower()
        return sorted({*_LOOPBACK_NAMES, host})


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class AccessGuard:
    """Refuse a foreign Host, a foreign Origin and a wrong token, before any body is read."""

    def __init__(self, app: ASGIApp, access: Access, page: Page) -> None:
        self._app, self._token, self._page = app, access.token, page
        self._hosts = access.trusted_hosts
        # It answers in plain text: its verdict is kept in the scope, and the problem document is written here.
        self._host_check = TrustedHostMiddleware(_trust, self._hosts, www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that is allowed."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            try:
                await self._check_host(scope, receive)
                _check_origin(headers, scope["path"])
            except RefusedError as refused:
                await refused.response()(scope, receive, send)
                return
            if not self._has_token(headers, scope["path"]):
                # The page holds no secret: it is shown, and asks the visitor for the token.
                is_page = scope["path"] == "/" and scope["method"] == "GET"
                answer = self._page.response(status=401) if is_page else _unauthorized().response()
                answer.headers["WWW-Authenticate"] = 'Bearer realm="zicl"'
                await answer(scope, receive, send)
                return
        elif scope["type"] != "lifespan":
            return
        await self._app(scope, receive, send)

    async def _check_host(self, scope: Scope, receive: Receive) -> None:
        """Refuse a name that another site pointed at this machine (DNS rebinding)."""
        await self._host_check(scope, receive, _discard)
        if not scope.pop(_TRUSTED, False):
            raise RefusedError(
                FOREIGN_HOST,
                "the Host header does not name this server",
                expected=f"one of the hosts {', '.join(self._hosts)}",
                hint="use the address that zicl serve printed",
            )

    def _has_token(self, headers: Headers, path: str) -> bool:
        if self._token is None or path in _OPEN:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # In constant time: how long the comparison takes says nothing about the token.
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), self._token.encode())
        return same and scheme.lower() == "bearer"


async def _trust(scope: Scope, _receive: Receive, _send: Send) -> None:
    scope[_TRUSTED] = True


async def _discard(_message: Message) -> None:
    pass


def _check_origin(headers: Headers, path: str) -> None:
    """Refuse a request that a page of another site makes in its visitor's name; a link to the page is fine."""
    host = headers.get("host", "").lower()
    same = all(origin.lower() in (f"http://{host}", f"https://{host}") for origin in headers.getlist("origin"))
    if not same or (path != "/" and headers.get("sec-fetch-site") in ("cross-site", "same-site")):
        raise RefusedError(
            FOREIGN_ORIGIN,
            "the request comes from a page of another site",
            expected="a request from the server's page, or from a program",
            hint="open the server's page, or send the request from a program, without an Origin header",
        )


def _unauthorized() -> RefusedError:
    return RefusedError(
        UNAUTHORIZED,
        "the token is missing or wrong",
        expected="the header Authorization: Bearer TOKEN",
        hint="ask the server's administrator for the token",
    )


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class SecurityHeaders:
    """Add security headers to every answer, and count requests by route and status."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add to its answer what is not there yet."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.monotonic(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            # The route's pattern, not the path: the number of counters must not depend on the clients.
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.requests.labels(route, status or "left").inc()
            self._metrics.seconds.labels(route).observe(time.monotonic() - start)
