"""The settings of a model on a server: limits and prices, its address, and its key."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Self
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from zicl.exceptions import ConfigError


class RemoteSettings(BaseModel):
    """What may be sent to a server, how fast and for how much; no setting changes a score."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Corpus sentences and texts may be sent to a server that is not on this machine.
    allow_text: bool = False
    # The tokenizer of the model: a catalog name, hf:ID, a folder or gguf:FILE. None: use the server's.
    tokenizer: str | None = None
    # Tokens of the longest prompt, for servers that do not report it.
    context: int | None = Field(None, ge=8)
    # Requests in flight at once.
    requests: int = Field(8, ge=1, le=512)
    # Seconds for one attempt, and the number of attempts for one request.
    timeout: float = Field(300.0, gt=0)
    attempts: int = Field(6, ge=1)
    # Prices per million tokens, in any currency, and the limit of one run in the same currency.
    price_in: float | None = Field(None, ge=0)
    price_out: float | None = Field(None, ge=0)
    max_cost: float | None = Field(None, gt=0)
    # Use cached answers of earlier runs, and cache the new ones.
    recall: bool = True

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.max_cost is not None and self.price_in is None:
            raise ValueError("max_cost needs price_in, the price of a million prompt tokens")
        return self


_FORM = "write http://HOST:PORT/v1#MODEL or https://HOST/v1#MODEL; MODEL is the name that the server has for it"


@dataclass(frozen=True)
class ServerAddress:
    """``http://HOST:PORT/v1#MODEL``: the base address of a server and a model; without one, the server's only model."""

    base: str
    model: str = ""

    @property
    def root(self) -> str:
        """The address without ``/v1``: endpoints that are not part of the OpenAI interface are there."""
        return re.sub(r"/v\d+$", "", self.base)

    @property
    def host(self) -> str:
        """The host without the port."""
        return urlsplit(self.base).hostname or ""

    @property
    def encrypted(self) -> bool:
        """Whether the connection is encrypted."""
        return self.base.startswith("https:")

    @property
    def loopback(self) -> bool:
        """Whether the server is on this machine, so that nothing that is sent leaves it."""
        try:
            addresses = [ipaddress.ip_address(self.host)]
        except ValueError:
            if self.host != "localhost":
                return False
            try:
                resolved = socket.getaddrinfo(self.host, None)
            except OSError:
                return False
            # The name is a mere convention: only the addresses count that it resolves to.
            addresses = [ipaddress.ip_address(str(entry[4][0])) for entry in resolved]
        return all(address.is_loopback for address in addresses)

    @property
    def shown(self) -> ServerAddress:
        """The address for results: of a model named by a path on the server, only the last part of the path.

        >>> str(ServerAddress("http://127.0.0.1:8000/v1", "/home/ann/tiny.gguf").shown)
        'http://127.0.0.1:8000/v1#tiny.gguf'
        """
        local = self.model.startswith(("/", ".", "~")) or "\\" in self.model
        return ServerAddress(self.base, PurePath(self.model.replace("\\", "/")).name) if local else self

    def __str__(self) -> str:
        return f"{self.base}#{self.model}" if self.model else self.base


def is_remote(spec: str) -> bool:
    """Return whether the name of a language model is the address of a server.

    >>> is_remote("http://127.0.0.1:8000/v1#llama"), is_remote("hf:org/http")
    (True, False)
    """
    return spec.startswith(("http:", "https:"))


def parse_address(spec: str) -> ServerAddress:
    """Check and return the address in the name of a model.

    >>> parse_address("http://127.0.0.1:8000/v1/#llama")
    ServerAddress(base='http://127.0.0.1:8000/v1', model='llama')
    """
    # An "http:" prefix in front of a complete address, as other kinds of models have one, is dropped.
    if spec.startswith(("http:http://", "http:https://")):
        spec = spec.removeprefix("http:")
    if "@" in spec.partition("#")[0]:
        # Before parsing, and without the address in the message: it holds a secret.
        raise ConfigError(
            "the address of the model has an @, as after a user name or password",
            hint="set the key in the environment (ZICL_API_KEY) and leave it out of the address",
        )
    try:
        parts = urlsplit(spec)
        port = parts.port
    except ValueError as error:
        # Without the address here too: what the parser takes for a port may be a part of a key.
        raise ConfigError("the address of the model has an impossible host or port", hint=_FORM) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{spec!r} is not the address of a server", hint=_FORM)
    if parts.query:
        raise ConfigError("the address of the model has a query (a part after '?')", hint=_FORM)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    base = f"{parts.scheme}://{host}" + (f":{port}" if port else "") + parts.path.rstrip("/")
    return ServerAddress(base, unquote(parts.fragment))


VARIABLE, FALLBACK = "ZICL_API_KEY", "OPENAI_API_KEY"
_HIDDEN = "[key]"


class ApiKey:
    """The key of a server, which no print, log or error shows."""

    def __init__(self, value: str = "") -> None:
        self._value = value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"ApiKey({_HIDDEN if self._value else ''})"

    def headers(self) -> dict[str, str]:
        """Return the HTTP headers with the key."""
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    def hide(self, text: str) -> str:
        """Return a text, such as the error message of a server, without the key."""
        return text.replace(self._value, _HIDDEN) if self._value else text


def find_api_key(address: ServerAddress, environment: Mapping[str, str] = os.environ) -> ApiKey:
    """Return the key for a server from the environment.

    The fallback was set for another program, so it is sent over encrypted connections and to this machine only.
    """
    private = address.encrypted or address.loopback
    for name in (VARIABLE, FALLBACK) if private else (VARIABLE,):
        value = environment.get(name, "").strip()
        # The HTTP library would show a key that is not a valid header in its error message.
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise ConfigError(
                f"the key in {name} has a space, a line break or a character that is not plain ASCII",
                hint="set it to the key alone, on one line, without quotes",
            )
        if value:
            return ApiKey(value)
    return ApiKey()
