"""Who may ask: no other site through a visitor's browser, and where a token is set, nobody without it."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zicl.apps.serve.page import Page
from zicl.apps.serve.problems import FOREIGN_HOST, FOREIGN_ORIGIN, UNAUTHORIZED, RefusedError
from zicl.apps.serve.queue import ServerMetrics
from zicl.exceptions import UsageError

OPEN = ("/healthz", "/readyz")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Access:
    """Where the server listens, and the token it asks for; an address that others reach needs one."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None

    def __post_init__(self) -> None:
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
            raise UsageError("the token is empty or holds characters that no header can", hint="use letters and digits")
        if self.token is None and not self.loopback:
            raise UsageError(
                f"{self.host} can be reached from other machines, and no token was given",
                hint="--token SECRET or the variable ZICL_TOKEN; or leave out --host to serve this machine alone",
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def names(self) -> frozenset[str]:
        """What a Host header may say; with a token that no other site knows, anything."""
        if not self.loopback:
            return frozenset()
        own = f"[{self.host}]" if ":" in self.host else self.host.lower()
        names = {*_LOCAL, own}
        return frozenset({f"{name}:{self.port}" for name in names} | (names if self.port in (80, 443) else set()))


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own.

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
    """Refuses what should not be asked, before anything of it is read."""

    def __init__(self, app: ASGIApp, access: Access, page: Page) -> None:
        self._app, self._access, self._page = app, access, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may be asked."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            try:
                self._check_host(headers)
                self._check_origin(headers, scope["path"])
            except RefusedError as refused:
                await refused.response()(scope, receive, send)
                return
            if not self._knows_token(headers, scope["path"]):
                # The page itself holds no secret: it is shown, and asks the visitor for the token.
                shown = scope["path"] == "/" and scope["method"] == "GET"
                answer = self._page.response(status=401) if shown else _unauthorized().response()
                answer.headers["WWW-Authenticate"] = 'Bearer realm="zicl"'
                await answer(scope, receive, send)
                return
        elif scope["type"] != "lifespan":
            return
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        """A name that another site pointed at this machine is not ours (DNS rebinding)."""
        names, given = self._access.names, headers.getlist("host")
        if len(given) != 1 or (names and given[0].lower() not in names):
            raise RefusedError(
                FOREIGN_HOST,
                "the Host header does not name this server",
                expected="one of: " + ", ".join(sorted(names)) if names else "one Host header",
                hint="use the address that zicl serve printed",
            )

    def _check_origin(self, headers: Headers, path: str) -> None:
        """A page of another site must not ask in its visitor's name; following a link to the page is fine."""
        foreign = any(not self._is_own(origin, headers["host"]) for origin in headers.getlist("origin"))
        if foreign or (path != "/" and headers.get("sec-fetch-site") in ("cross-site", "same-site")):
            raise RefusedError(
                FOREIGN_ORIGIN,
                "the request comes from a page of another site",
                expected="a request from the server's own page, or from a program",
                hint="open the server's own page, or ask from a program, which sends no Origin header",
            )

    def _is_own(self, origin: str, host: str) -> bool:
        scheme, _, place = origin.lower().partition("://")
        names = self._access.names or {host.lower()}
        return scheme in ("http", "https") and place in names

    def _knows_token(self, headers: Headers, path: str) -> bool:
        token = self._access.token
        if token is None or path in OPEN:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # In constant time: how long the comparison takes says nothing of the token.
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), token.encode())
        return same and scheme.lower() == "bearer"


def _unauthorized() -> RefusedError:
    return RefusedError(
        UNAUTHORIZED,
        "the token is missing or wrong",
        expected="the header Authorization: Bearer TOKEN",
        hint="ask who runs the server for its token",
    )


# -- Around every answer: headers that keep it where it belongs, and a count of it.


_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_POLICY = "default-src 'none'; frame-ancestors 'none'"


class SecurityHeaders:
    """Adds the headers, and counts requests by route and status."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
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
