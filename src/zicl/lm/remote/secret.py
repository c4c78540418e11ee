"""The key of a server: from the environment, and seen by nobody but the server."""

from __future__ import annotations

import os
from collections.abc import Mapping

from zicl.exceptions import ConfigError
from zicl.lm.remote.address import Address

VARIABLE, FALLBACK = "ZICL_API_KEY", "OPENAI_API_KEY"
_HIDDEN = "[key]"


class Secret:
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


def find_secret(address: Address, environment: Mapping[str, str] = os.environ) -> Secret:
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
            return Secret(value)
    return Secret()
