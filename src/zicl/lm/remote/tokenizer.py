"""The server's own tokenizer, asked over HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from zicl.exceptions import ModelError, ServerError, TokenizationError
from zicl.lm.remote.backends.base import missing_error, select_part
from zicl.lm.remote.client import Client
from zicl.lm.tokenizer import ANCHOR, behind_anchor
from zicl.prompt.tokens import Tokenizer

# A prompt's parts are asked for again and again: lines that every prompt has, and sentences that many show.
_REMEMBERED = 100_000
# Written for comparing: words, digits, punctuation, other scripts, line breaks as templates have them.
TRIED = (
    "The lamp was off, and nobody knew why.",
    "\nLabel: great\n\n\nText: it isn't over",
    " 1,024 rows (87%) of naïve café — 冬の港",
    "Ein Übermaß an Straßenlärm; über 30 dB!",
)


@dataclass(frozen=True)
class _Dialect:
    """Where a server splits a text and puts it together, and under which names."""

    encode: str
    text: str
    decode: str
    back: tuple[str, ...]
    plain: tuple[tuple[str, Any], ...] = ()


_DIALECTS = (
    # vLLM and SGLang
    _Dialect("/tokenize", "prompt", "/detokenize", ("prompt", "text"), (("add_special_tokens", False),)),
    # llama-cpp-python
    _Dialect("/extras/tokenize", "input", "/extras/detokenize", ("text",)),
)


class ServerTokenizer:
    """Splits as the server does. What it puts before every text by itself, a token or a space, is left out."""

    def __init__(self, client: Client, model: str, dialect: _Dialect, name: str) -> None:
        self._client, self._model, self._dialect = client, model, dialect
        self.name = name
        self._memory = lru_cache(_REMEMBERED)(self._ask)
        self._first, self.bos = self._beginning()
        self._anchor: tuple[int, ...] = ()
        if self.decode(self.encode("a") * 2) != "aa":
            self._anchor = self._memory(ANCHOR)[self._first :]
            if self.decode(self.encode("a") * 2) != "aa":
                raise ModelError(
                    f"{name} does not give text back as it was",
                    hint="name a copy of it with --tokenizer, or use a model with a lossless (byte-level) tokenizer",
                )

    def _beginning(self) -> tuple[int, int | None]:
        """How many tokens the server puts before a text even where none is asked for, and its first token."""
        if not self._dialect.plain:
            always = self._ask("")
            return len(always), always[0] if always else None
        with_first, without = self._ask("a", plain=False), self._ask("a")
        if not without:
            # It took the request and not the text in it: another server, with another name for the text.
            raise missing_error("tokens", self._client.address.host)
        return 0, with_first[0] if with_first[1:] == without else None

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of ``text``, no special ones."""
        if not text:
            return ()
        before = ANCHOR if self._anchor else ""
        return self._memory(before + text)[self._first + len(self._anchor) :]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ``tokens``, nothing cleaned up."""
        if not tokens:
            return ""
        dialect, root = self._dialect, self._client.address.root
        body = {"model": self._model, "tokens": [*self._anchor, *tokens], "skip_special_tokens": False}
        answer = self._client.post(root + dialect.decode, body)
        key = next((key for key in dialect.back if isinstance(answer, dict) and key in answer), dialect.back[0])
        text = str(select_part(answer, key, server=self._client.address.host))
        return behind_anchor(text) if self._anchor else text

    def adds_bos(self) -> bool:
        """Whether the tokenizer itself puts its beginning-of-sequence token before a text."""
        return self.bos is not None

    def _ask(self, text: str, *, plain: bool = True) -> tuple[int, ...]:
        dialect = self._dialect
        body = {"model": self._model, dialect.text: text, **(dict(dialect.plain) if plain else {})}
        answer = self._client.post(self._client.address.root + dialect.encode, body)
        found = select_part(answer, "tokens", server=self._client.address.host)
        return tuple(int(token) for token in found)


def server_tokenizer(client: Client, model: str, name: str) -> ServerTokenizer | None:
    """The server's tokenizer, if it lets one ask."""
    for dialect in _DIALECTS:
        try:
            return ServerTokenizer(client, model, dialect, name)
        except ServerError as error:
            # An answer of another shape is one of another dialect.
            if not error.reached or (error.status is not None and not 400 <= error.status < 500):
                raise
    return None


def identity(tokenizer: Tokenizer) -> str:
    """A hash of what a tokenizer does: the server's own and a named copy of it have the same."""
    tried = repr([tokenizer.encode(text) for text in TRIED])
    return hashlib.sha256(tried.encode()).hexdigest()


def compare(tokenizer: Tokenizer, server: Tokenizer) -> None:
    """The named tokenizer splits as the server does, or an error."""
    for text in TRIED:
        if tokenizer.encode(text) != server.encode(text):
            raise TokenizationError(
                f"{tokenizer.name} is not the server's tokenizer: they split {text!r} differently",
                hint="name the model's own tokenizer with --tokenizer, or leave it out to use the server's",
            )
