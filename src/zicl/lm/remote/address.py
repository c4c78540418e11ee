"""Where a remote model is: ``http://HOST:PORT/v1#MODEL``."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import unquote, urlsplit

from zicl.exceptions import ConfigError

_FORM = "write http://HOST:PORT/v1#MODEL or https://HOST/v1#MODEL; the part behind # is the name the server has for it"


@dataclass(frozen=True)
class Address:
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
    def shown(self) -> Address:
        """As results name it: of a path on the server's machine only the last part says something to others.

        >>> str(Address("http://127.0.0.1:8000/v1", "/home/ann/tiny.gguf").shown)
        'http://127.0.0.1:8000/v1#tiny.gguf'
        """
        local = self.model.startswith(("/", ".", "~")) or "\\" in self.model
        return Address(self.base, PurePath(self.model.replace("\\", "/")).name) if local else self

    def __str__(self) -> str:
        return f"{self.base}#{self.model}" if self.model else self.base


def is_remote(spec: str) -> bool:
    """Whether a language model's name is the address of a server.

    >>> is_remote("http://127.0.0.1:8000/v1#llama"), is_remote("hf:org/http")
    (True, False)
    """
    return spec.startswith(("http:", "https:"))


def parse(spec: str) -> Address:
    """The address in a name, checked.

    >>> parse("http://127.0.0.1:8000/v1/#llama")
    Address(base='http://127.0.0.1:8000/v1', model='llama')
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
    return Address(base, unquote(parts.fragment))
