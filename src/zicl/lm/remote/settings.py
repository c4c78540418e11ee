"""How a remote model is asked."""

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
    """What may be sent, how fast, for how much; none of it changes a score.

    ``tokenizer`` names the one prompts are written with (a catalog name, ``hf:ID``, a folder or ``gguf:FILE``); without
    it the server's own is asked. Prices are for a million tokens, in any currency, as is ``max_cost``, for one run.
    Without ``recall`` answers of earlier runs are not used, and these are not kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Corpus sentences and texts may be sent to a server that is not on this machine.
    allow_text: bool = False
    tokenizer: str | None = None
    # Tokens of the longest prompt, for servers that do not tell.
    context: int | None = Field(None, ge=8)
    requests: int = Field(8, ge=1, le=512)
    timeout: float = Field(300.0, gt=0)
    attempts: int = Field(6, ge=1)
    price_in: float | None = Field(None, ge=0)
    price_out: float | None = Field(None, ge=0)
    max_cost: float | None = Field(None, gt=0)
    recall: bool = True

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.max_cost is not None and self.price_in is None:
            raise ValueError("max_cost needs price_in, the price of a million tokens of prompt")
        return self


# -- Where a remote model is: ``http://HOST:PORT/v1#MODEL``.


_FORM = "write http://HOST:PORT/v1#MODEL or https://HOST/v1#MODEL; the part behind # is the name the server has for it"


@dataclass(frozen=True)
class ServerAddress:
    """A server's base address and the model asked for; without a model, the only one the server has."""

    base: str
    model: str = ""

    @property
    def root(self) -> str:
        """The server itself: what is not part of the OpenAI interface lives beside ``/v1``."""
        return re.sub(r"/v\d+$", "", self.base)

    @property
    def host(self) -> str:
        """The host, without its port."""
        return urlsplit(self.base).hostname or ""

    @property
    def encrypted(self) -> bool:
        """Whether what is sent can be read on the way."""
        return self.base.startswith("https:")

    @property
    def loopback(self) -> bool:
        """Whether the server runs on this very machine, so that nothing that is sent leaves it."""
        try:
            found = [ipaddress.ip_address(self.host)]
        except ValueError:
            if self.host != "localhost":
                return False
            try:
                answers = socket.getaddrinfo(self.host, None)
            except OSError:
                return False
            # The name is a convention only: what counts is where it leads.
            found = [ipaddress.ip_address(str(answer[4][0])) for answer in answers]
        return all(address.is_loopback for address in found)

    @property
    def shown(self) -> ServerAddress:
        """As results name it: of a path on the server's machine only the last part says something to others.

        >>> str(ServerAddress("http://127.0.0.1:8000/v1", "/home/ann/tiny.gguf").shown)
        'http://127.0.0.1:8000/v1#tiny.gguf'
        """
        local = self.model.startswith(("/", ".", "~")) or "\\" in self.model
        return ServerAddress(self.base, PurePath(self.model.replace("\\", "/")).name) if local else self

    def __str__(self) -> str:
        return f"{self.base}#{self.model}" if self.model else self.base


def is_remote(spec: str) -> bool:
    """Whether a language model's name is the address of a server.

    >>> is_remote("http://127.0.0.1:8000/v1#llama"), is_remote("hf:org/http")
    (True, False)
    """
    return spec.startswith(("http:", "https:"))


def parse_address(spec: str) -> ServerAddress:
    """The address in a name, checked.

    >>> parse_address("http://127.0.0.1:8000/v1/#llama")
    ServerAddress(base='http://127.0.0.1:8000/v1', model='llama')
    """
    # "http:" before a whole address, as other kinds of models are written, says nothing more.
    if spec.startswith(("http:http://", "http:https://")):
        spec = spec.removeprefix("http:")
    if "@" in spec.partition("#")[0]:
        # Before all else, and not repeated in the message: it holds a secret, wherever a parser would see it end.
        raise ConfigError(
            "the address of the model has an @, as behind a user name or password",
            hint="keys come from the environment: set ZICL_API_KEY and leave them out of the address",
        )
    try:
        parts = urlsplit(spec)
        port = parts.port
    except ValueError as error:
        # Not repeated either: what the parser takes for a port may be a part of a key.
        raise ConfigError("the address of the model has an impossible host or port", hint=_FORM) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{spec!r} is not the address of a server", hint=_FORM)
    if parts.query:
        raise ConfigError("the address of the model has a part behind '?'", hint=_FORM)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    base = f"{parts.scheme}://{host}" + (f":{port}" if port else "") + parts.path.rstrip("/")
    return ServerAddress(base, unquote(parts.fragment))


# -- The key of a server: from the environment, and seen by nobody but the server.


VARIABLE, FALLBACK = "ZICL_API_KEY", "OPENAI_API_KEY"
_HIDDEN = "[key]"


class ApiKey:
    """A key that no print, log or error shows."""

    def __init__(self, value: str = "") -> None:
        self._value = value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Secret({_HIDDEN if self._value else ''})"

    def headers(self) -> dict[str, str]:
        """What shows the key to the server."""
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    def hide(self, text: str) -> str:
        """A text, such as a server's own error, without the key."""
        return text.replace(self._value, _HIDDEN) if self._value else text


def find_api_key(address: ServerAddress, environment: Mapping[str, str] = os.environ) -> ApiKey:
    """The key for a server. The fallback was set for another program, so it is not sent where others could read it."""
    private = address.encrypted or address.loopback
    for name in (VARIABLE, FALLBACK) if private else (VARIABLE,):
        value = environment.get(name, "").strip()
        # What a header cannot hold would come back, whole, in the error of the library that sends it.
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise ConfigError(
                f"the key in {name} has a space, a line break or a character that is not plain ASCII",
                hint="set it to the key alone, on one line, without typographic quotes",
            )
        if value:
            return ApiKey(value)
    return ApiKey()
