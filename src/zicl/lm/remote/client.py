"""When a request that failed is sent again."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from zicl._util.random import rng
from zicl.exceptions import ConfigError, ModelError, ServerError
from zicl.lm.remote.budget import UsageMeter
from zicl.lm.remote.settings import FALLBACK, VARIABLE, ApiKey, RemoteSettings, ServerAddress

if TYPE_CHECKING:
    from httpx import Client as HTTPClient

_FIRST, _LONGEST = 0.5, 60.0
# A server that asks for a longer pause than this is not waited for.
PATIENCE = 600.0
# Overload. Any other refusal would be repeated as it is, and so would two of a server's own faults: what it does not
# know how to do.
_BUSY, _UNABLE = frozenset({408, 409, 425, 429}), frozenset({501, 505})


def is_transient(status: int) -> bool:
    """Whether a request with this answer may succeed later.

    >>> [status for status in (400, 429, 501, 503, 524) if is_transient(status)]
    [429, 503, 524]
    """
    return status in _BUSY or (500 <= status < 600 and status not in _UNABLE)


def retry_delay(attempt: int, jitter: float, asked: float | None = None) -> float:
    """Seconds to wait after failed attempt number ``attempt`` (from 0); ``jitter`` is drawn from [0, 1).

    It doubles each time and is spread over its upper half, so that clients do not come back all at once. What the
    server ``asked`` for is the least.

    >>> retry_delay(0, 0.0), retry_delay(3, 0.5), retry_delay(20, 0.0), retry_delay(0, 0.5, asked=7)
    (0.25, 3.0, 30.0, 7.375)
    """
    spread = min(_LONGEST, _FIRST * 2.0 ** min(attempt, 30)) * (0.5 + jitter / 2)
    return spread if asked is None else asked + spread


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """The seconds in a Retry-After header, which holds a number or a date; None if there is none to read.

    >>> retry_after("3"), retry_after("soon")
    (3.0, None)
    """
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


# -- Requests that come back: JSON over HTTP with time limits, retries and a meter.


# An answer about one prompt is a few hundred kilobytes at most.
_LARGEST = 256 << 20
_CONNECT = 10.0
_SHOWN = 300
_NEVER = threading.Event()


@dataclass(frozen=True)
class _Fault:
    """What went wrong in one attempt, and how long the server asked to be left alone."""

    message: str
    asked: float | None = None
    status: int | None = None


class Client:
    """Speaks with one server, from any number of threads."""

    def __init__(
        self,
        address: ServerAddress,
        settings: RemoteSettings,
        secret: ApiKey,
        *,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        httpx = _httpx()
        self.address, self.settings = address, settings
        self.meter = UsageMeter(settings.price_in, settings.price_out, settings.max_cost)
        self._secret, self._sleep, self._clock = secret, sleep, clock
        self._attempts, self._local = settings.attempts, threading.local()
        self._http: HTTPClient = httpx.Client(
            headers={**secret.headers(), "User-Agent": "zicl"},
            timeout=httpx.Timeout(settings.timeout, connect=min(_CONNECT, settings.timeout), pool=None),
            limits=httpx.Limits(max_connections=settings.requests, max_keepalive_connections=settings.requests),
            # A proxy would carry what is said on this machine out of it. Redirects are not followed: they would
            # carry text and key to an address nobody agreed to.
            trust_env=not address.loopback,
            # Certificates are read only where they are looked at, which takes a while.
            verify=address.encrypted,
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    @contextmanager
    def hurried(self, attempts: int = 3) -> Iterator[None]:
        """Within the block fewer attempts are made: some servers say "internal error" where they mean "never"."""
        self._attempts = min(attempts, self.settings.attempts)
        try:
            yield
        finally:
            self._attempts = self.settings.attempts

    @contextmanager
    def until(self, stop: threading.Event) -> Iterator[None]:
        """Within the block this thread begins no further attempt once ``stop`` is set."""
        self._local.stop = stop
        try:
            yield
        finally:
            self._local.stop = _NEVER

    def get(self, url: str) -> Any:
        """Fetch JSON."""
        return self._asked("GET", url, None, 0)

    def post(self, url: str, body: Mapping[str, Any], *, tokens: int = 0) -> Any:
        """Send JSON and read the answer; ``tokens`` of prompt are paid for."""
        return self._asked("POST", url, body, tokens)

    def _asked(self, method: str, url: str, body: Mapping[str, Any] | None, tokens: int) -> Any:
        content, attempts = b"" if body is None else json.dumps(body).encode(), self._attempts
        stop: threading.Event = getattr(self._local, "stop", _NEVER)
        for attempt in range(attempts):
            if stop.is_set():
                raise ServerError(f"{self.address.host} is not asked any more", reached=False)
            answer = self._once(method, url, content, tokens)
            if not isinstance(answer, _Fault):
                return answer
            if (answer.asked or 0.0) > PATIENCE:
                raise ServerError(
                    f"{self.address.host} asks to be left alone for {answer.asked:.0f} seconds: {answer.message}",
                    hint="try again then; what was answered so far is kept",
                    status=answer.status,
                )
            if attempt + 1 < attempts:
                draw = rng(0, "retry", hashlib.sha256(content).hexdigest(), attempt)
                (self._sleep or stop.wait)(retry_delay(attempt, float(draw.random()), answer.asked))
        raise ServerError(
            f"{self.address.host} did not answer in {attempts} attempts; at last: {answer.message}",
            hint="see the server's own log; what was answered so far is kept, and asked for only once",
            status=answer.status,
            reached=answer.status is not None,
        )

    def _once(self, method: str, url: str, content: bytes, tokens: int) -> Any:
        """One attempt: the answer, or a fault that may pass. What will not pass is raised."""
        httpx = _httpx()
        aside = self.meter.set_aside(tokens, 1) if tokens else 0.0
        try:
            status, headers, raw = self._exchange(method, url, content)
        except httpx.ConnectError as error:
            self.meter.refused(aside)
            return _Fault(f"no connection ({self._shown(str(error))})")
        except httpx.TimeoutException:
            self.meter.lost(aside)
            return _Fault(f"no answer within {self.settings.timeout:g} seconds")
        except httpx.RequestError as error:
            self.meter.lost(aside)
            return _Fault(f"the connection broke ({self._shown(str(error)) or type(error).__name__})")
        except httpx.InvalidURL as error:
            self.meter.refused(aside)
            raise ConfigError(
                f"{self.address.base} is not an address ({error})", hint="write http://HOST:PORT/v1#MODEL"
            ) from error
        if status != 200:
            self.meter.refused(aside)
            return self._refusal(status, headers, raw, url)
        try:
            answer = json.loads(raw)
        except ValueError:
            self.meter.lost(aside)
            return _Fault("what came is not JSON")
        if tokens:
            self.meter.answered(aside, *_usage(answer, tokens))
        return answer

    def _exchange(self, method: str, url: str, content: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send and read to the end. The library's limit is for each read; this one is for the whole."""
        httpx = _httpx()
        end, parts, size = self._clock() + self.settings.timeout, [], 0
        headers = {"Content-Type": "application/json"} if content else {}
        with self._http.stream(method, url, content=content or None, headers=headers) as response:
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if self._clock() > end:
                    raise httpx.ReadTimeout("the answer takes too long")
                if size > _LARGEST:
                    raise ServerError(
                        f"{self.address.host} sent more than {_LARGEST >> 20} MiB in one answer",
                        hint="this is not an inference server's answer: check the address",
                    )
        return response.status_code, response.headers, b"".join(parts)

    def _shown(self, text: str) -> str:
        """The beginning of what somebody else wrote, without the key: hidden first, so that cutting leaves no piece."""
        return _first_line(self._secret.hide(text))[:_SHOWN]

    def _refusal(self, status: int, headers: Mapping[str, str], raw: bytes, url: str) -> _Fault:
        said = self._shown(_server_message(raw))
        message = f"{status}: {said}" if said else str(status)
        used_up = status == 429 and "insufficient_quota" in said
        if is_transient(status) and not used_up:
            return _Fault(message, retry_after(headers.get("retry-after")), status)
        if status in (401, 403):
            state = "was not accepted" if self._secret else "is needed"
            raise ServerError(
                f"{self.address.host} refuses: a key {state} ({message})",
                hint=f"set {VARIABLE} in the environment ({FALLBACK} is read too, for https and loopback addresses)",
                status=status,
            )
        if 300 <= status < 400:
            raise ServerError(
                f"{self.address.host} points elsewhere ({status})",
                hint="give the address it points to; redirects are not followed, for they would carry text along",
                status=status,
            )
        too_long = "context" in said or "too long" in said
        raise ServerError(
            f"{self.address.host} refuses {url.removeprefix(self.address.root)} ({message})",
            hint="say how many tokens a prompt may have: --context"
            if too_long
            else "check the address, the model's name and the server's options",
            status=status,
        )


def _httpx() -> Any:
    try:
        import httpx
    except ImportError as error:
        raise ModelError("remote models need an extra", hint='pip install "zicl[remote]"') from error
    return httpx


def _usage(answer: Any, tokens: int) -> tuple[int, int]:
    """The tokens a server says it used, else those that were sent and the one that was asked for."""
    if not isinstance(answer, dict):
        return tokens, 1
    usage = answer.get("usage") or answer.get("meta_info")
    if not isinstance(usage, dict):
        return tokens, 1
    sent, received = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return sent if isinstance(sent, int) else tokens, received if isinstance(received, int) else 1


def _server_message(raw: bytes) -> str:
    """What an error answer says: servers put it in one of a few places."""
    text = raw[:10_000].decode("utf-8", "replace")
    try:
        answer = json.loads(text)
    except ValueError:
        return _first_line(text)
    found = answer
    while isinstance(found, dict):
        code = str(found.get("code") or "")
        found = next((found[key] for key in ("error", "message", "detail", "msg") if found.get(key)), code)
        if isinstance(found, str) and code and code not in found:
            found = f"{found} [{code}]"
    return _first_line(found if isinstance(found, str) else json.dumps(found))


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]
