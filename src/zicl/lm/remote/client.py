"""Send JSON over HTTP to one server: with time limits, retries, and the usage counted."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from zicl._util.process import require_extra
from zicl._util.strict_json import parse_json
from zicl.exceptions import ConfigError, ServerError
from zicl.lm.remote.budget import UsageMeter
from zicl.lm.remote.settings import FALLBACK, VARIABLE, ApiKey, RemoteSettings, ServerAddress

if TYPE_CHECKING:
    from httpx import Client as HTTPClient
    from tenacity import RetryCallState

# Seconds before the second attempt, doubled for each further one, up to a limit.
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0
# A server that asks for a longer pause than this is given up.
_MAX_RETRY_AFTER = 600.0
# Overload. Other refusals would be the same again, and so would these two server errors: not implemented, HTTP version.
_BUSY, _UNABLE = frozenset({408, 409, 425, 429}), frozenset({501, 505})
# The answer for one prompt has a few hundred kilobytes at most.
_MAX_BYTES = 256 << 20
_CONNECT_SECONDS = 10.0
# Characters of a server's error message that are shown.
_MAX_MESSAGE = 300
_NEVER = threading.Event()


class _TransientError(Exception):
    """A failed attempt that may succeed later; ``retry_after`` are the seconds that the server asks to wait."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class Client:
    """The connection to one server, for use from any number of threads."""

    def __init__(
        self,
        address: ServerAddress,
        settings: RemoteSettings,
        key: ApiKey,
        *,
        sleep: Callable[[float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        httpx = _httpx()
        self.address, self.settings = address, settings
        self.meter = UsageMeter(settings.price_in, settings.price_out, settings.max_cost)
        self._key, self._sleep, self._clock = key, sleep, clock
        self._attempts, self._local = settings.attempts, threading.local()
        self._http: HTTPClient = httpx.Client(
            headers={**key.headers(), "User-Agent": "zicl"},
            timeout=httpx.Timeout(settings.timeout, connect=min(_CONNECT_SECONDS, settings.timeout), pool=None),
            limits=httpx.Limits(max_connections=settings.requests, max_keepalive_connections=settings.requests),
            # A proxy would take requests to this machine out of it.
            trust_env=not address.loopback,
            # Loading the certificates takes time, so only where they are checked.
            verify=address.encrypted,
            # A redirect would take texts and key to an address that the user did not allow.
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    @contextmanager
    def fewer_attempts(self, attempts: int = 3) -> Iterator[None]:
        """Within the block, give up earlier: some servers answer "internal error" to what they do not support."""
        self._attempts = min(attempts, self.settings.attempts)
        try:
            yield
        finally:
            self._attempts = self.settings.attempts

    @contextmanager
    def until(self, stop: threading.Event) -> Iterator[None]:
        """Within the block, this thread starts no further attempt once ``stop`` is set."""
        self._local.stop = stop
        try:
            yield
        finally:
            self._local.stop = _NEVER

    def get(self, url: str) -> Any:
        """Fetch JSON."""
        return self._request("GET", url, b"", 0)

    def post(self, url: str, body: Mapping[str, Any], *, tokens: int = 0) -> Any:
        """Send JSON and return the answer; ``tokens`` of the prompt are paid for."""
        return self._request("POST", url, json.dumps(body).encode(), tokens)

    def _request(self, method: str, url: str, content: bytes, tokens: int) -> Any:
        from tenacity import Retrying, retry_if_exception_type, sleep_using_event, stop_after_attempt

        attempts, stop = self._attempts, getattr(self._local, "stop", _NEVER)
        retrying = Retrying(
            retry=retry_if_exception_type(_TransientError),
            stop=stop_after_attempt(attempts),
            wait=_wait,
            sleep=self._sleep or sleep_using_event(stop),
            reraise=True,
        )
        try:
            return retrying(self._attempt, method, url, content, tokens, stop)
        except _TransientError as error:
            raise ServerError(
                f"{self.address.host} did not answer in {attempts} attempts; the last error: {error}",
                hint="see the log of the server; all answers so far are kept and not requested again",
                status=error.status,
                reached=error.status is not None,
            ) from None

    def _attempt(self, method: str, url: str, content: bytes, tokens: int, stop: threading.Event) -> Any:
        """Send the request once and return the answer."""
        httpx = _httpx()
        if stop.is_set():
            raise ServerError(f"requests to {self.address.host} were stopped", reached=False)
        reserved = self.meter.reserve(tokens, 1) if tokens else 0.0
        try:
            status, headers, raw = self._exchange(method, url, content)
        except httpx.ConnectError as error:
            self.meter.refused(reserved)
            raise _TransientError(f"no connection ({self._visible(str(error))})") from None
        except httpx.TimeoutException:
            self.meter.lost(reserved)
            raise _TransientError(f"no answer within {self.settings.timeout:g} seconds") from None
        except httpx.RequestError as error:
            self.meter.lost(reserved)
            reason = self._visible(str(error)) or type(error).__name__
            raise _TransientError(f"the connection broke ({reason})") from None
        except httpx.InvalidURL as error:
            self.meter.refused(reserved)
            raise ConfigError(
                f"{self.address.base} is not an address ({error})", hint="write http://HOST:PORT/v1#MODEL"
            ) from error
        if status != 200:
            self.meter.refused(reserved)
            raise self._refusal(status, headers, raw, url)
        try:
            answer = parse_json(raw.decode())
        except ValueError:
            self.meter.lost(reserved)
            raise _TransientError("the answer is not JSON") from None
        if tokens:
            self.meter.answered(reserved, *_usage(answer, tokens))
        return answer

    def _exchange(self, method: str, url: str, content: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send the request and read the answer. The library limits the time of each read, this the time of all."""
        httpx = _httpx()
        deadline, parts, size = self._clock() + self.settings.timeout, [], 0
        headers = {"Content-Type": "application/json"} if content else {}
        with self._http.stream(method, url, content=content or None, headers=headers) as response:
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if self._clock() > deadline:
                    raise httpx.ReadTimeout("the answer takes too long")
                if size > _MAX_BYTES:
                    raise ServerError(
                        f"{self.address.host} sent more than {_MAX_BYTES >> 20} MiB in one answer",
                        hint="check the address: this is not the answer of an inference server",
                    )
        return response.status_code, response.headers, b"".join(parts)

    def _refusal(self, status: int, headers: Mapping[str, str], raw: bytes, url: str) -> Exception:
        """Return the error for an answer with this status."""
        reason, host = self._visible(_error_message(raw)), self.address.host
        message = f"{status}: {reason}" if reason else str(status)
        quota_used_up = status == 429 and "insufficient_quota" in reason
        if is_transient(status) and not quota_used_up:
            seconds = retry_after(headers.get("retry-after")) or 0.0
            if seconds <= _MAX_RETRY_AFTER:
                return _TransientError(message, status=status, retry_after=seconds)
            return ServerError(
                f"{host} asks for a pause of {seconds:.0f} seconds: {message}",
                hint="try again after that; all answers so far are kept",
                status=status,
            )
        if status in (401, 403):
            return ServerError(
                f"{host} refuses: a key {'was not accepted' if self._key else 'is needed'} ({message})",
                hint=f"set {VARIABLE} in the environment ({FALLBACK} is read too, for https and loopback addresses)",
                status=status,
            )
        if 300 <= status < 400:
            return ServerError(
                f"{host} redirects to another address ({status})",
                hint="give that address; redirects are not followed, because they would take your texts along",
                status=status,
            )
        too_long = "context" in reason or "too long" in reason
        return ServerError(
            f"{host} refuses {url.removeprefix(self.address.root)} ({message})",
            hint="say how many tokens a prompt may have: --server context=TOKENS"
            if too_long
            else "check the address, the name of the model and the options of the server",
            status=status,
        )

    def _visible(self, text: str) -> str:
        """Return the beginning of a foreign message without the key; hidden first, so that no part of it is left."""
        return _first_line(self._key.hide(text))[:_MAX_MESSAGE]


def is_transient(status: int) -> bool:
    """Return whether a request with this answer may succeed later.

    >>> [status for status in (400, 429, 501, 503, 524) if is_transient(status)]
    [429, 503, 524]
    """
    return status in _BUSY or (500 <= status < 600 and status not in _UNABLE)


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds in a Retry-After header, which is a number or a date; None if it cannot be read.

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
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def _wait(state: RetryCallState) -> float:
    """Return the seconds before the next attempt: what the server asks for, and an exponential wait with jitter.

    Half of the exponential wait is random, so that clients do not return all at once.
    """
    from tenacity import wait_exponential, wait_random_exponential

    half = {"multiplier": _FIRST_WAIT / 2, "max": _LONGEST_WAIT / 2}
    error = state.outcome.exception() if state.outcome else None
    pause = error.retry_after if isinstance(error, _TransientError) else 0.0
    return pause + wait_exponential(**half)(state) + wait_random_exponential(**half)(state)


def _httpx() -> Any:
    require_extra("remote", "a model behind a server", "httpx", "tenacity")
    import httpx

    return httpx


def _usage(answer: Any, tokens: int) -> tuple[int, int]:
    """Return the tokens that a server reports as used, or else those that were sent and the one requested."""
    if not isinstance(answer, dict):
        return tokens, 1
    usage = answer.get("usage") or answer.get("meta_info")
    if not isinstance(usage, dict):
        return tokens, 1
    sent, received = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return sent if isinstance(sent, int) else tokens, received if isinstance(received, int) else 1


def _error_message(raw: bytes) -> str:
    """Return the message of an error answer: servers put it in one of a few places."""
    text = raw[:10_000].decode("utf-8", "replace")
    try:
        value = parse_json(text)
    except ValueError:
        return _first_line(text)
    while isinstance(value, dict):
        code = str(value.get("code") or "")
        value = next((value[key] for key in ("error", "message", "detail", "msg") if value.get(key)), code)
        if isinstance(value, str) and code and code not in value:
            value = f"{value} [{code}]"
    # Checks of a request say more in each further line.
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value)


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]
