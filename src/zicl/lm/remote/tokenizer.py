"""The tokenizer of a server, used over HTTP, and its comparison with a local copy."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from zicl.exceptions import ModelError, ServerError, TokenizationError
from zicl.lm.remote.backends.base import missing_error, select_part
from zicl.lm.remote.client import Client
from zicl.lm.tokenizer import ANCHOR, after_anchor
from zicl.prompt.tokens import Tokenizer

# Texts whose tokens are cached: prompts share lines and sentences.
_CACHED_TEXTS = 100_000
# For comparing tokenizers: words, digits, punctuation, other scripts, line breaks as in templates.
_SAMPLES = (
    "The lamp was off, and nobody knew why.",
    "\nLabel: great\n\n\nText: it isn't over",
    " 1,024 rows (87%) of naïve café — 冬の港",
    "Ein Übermaß an Straßenlärm; über 30 dB!",
)


@dataclass(frozen=True)
class _Endpoints:
    """The endpoints of a tokenizer, and the names of their fields.

    ``options`` switch special tokens off; without any, the server always prepends them.
    """

    encode: str
    text: str
    decode: str
    decoded: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()


_ENDPOINTS = (
    # vLLM and SGLang
    _Endpoints("/tokenize", "prompt", "/detokenize", ("prompt", "text"), (("add_special_tokens", False),)),
    # llama-cpp-python
    _Endpoints("/extras/tokenize", "input", "/extras/detokenize", ("text",)),
)


class ServerTokenizer:
    """Encode as the server does, without the token or space that it prepends to every text."""

    def __init__(self, client: Client, model: str, endpoints: _Endpoints, name: str) -> None:
        self._client, self._model, self._endpoints = client, model, endpoints
        self.name = name
        self._cached = lru_cache(_CACHED_TEXTS)(self._request)
        self._prepended, self.bos = self._prepended_tokens()
        self._anchor: tuple[int, ...] = ()
        if self.decode(self.encode("a") * 2) != "aa":
            self._anchor = self._cached(ANCHOR)[self._prepended :]
            if self.decode(self.encode("a") * 2) != "aa":
                raise ModelError(
                    f"{name} does not decode to the text that was encoded",
                    hint="name a copy with --server tokenizer=…, or use a model with a lossless (byte-level) tokenizer",
                )

    def _prepended_tokens(self) -> tuple[int, int | None]:
        """Return how many tokens the server prepends whatever the options, and its BOS token."""
        if not self._endpoints.options:
            always = self._request("")
            return len(always), always[0] if always else None
        special, plain = self._request("a", plain=False), self._request("a")
        if not plain:
            # The server ignores the field with the text: it has another name for it.
            raise missing_error("tokens", self._client.address.host)
        return 0, special[0] if special[1:] == plain else None

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of ``text``, without special tokens."""
        if not text:
            return ()
        before = ANCHOR if self._anchor else ""
        return self._cached(before + text)[self._prepended + len(self._anchor) :]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of ``tokens``, without any clean-up."""
        if not tokens:
            return ""
        endpoints, address = self._endpoints, self._client.address
        body = {"model": self._model, "tokens": [*self._anchor, *tokens], "skip_special_tokens": False}
        answer = self._client.post(address.root + endpoints.decode, body)
        fields = endpoints.decoded
        field = next((field for field in fields if isinstance(answer, dict) and field in answer), fields[0])
        text = str(select_part(answer, field, server=address.host))
        return after_anchor(text) if self._anchor else text

    def adds_bos(self) -> bool:
        """Return whether the server by default prepends its beginning-of-sequence token."""
        return self.bos is not None

    def _request(self, text: str, *, plain: bool = True) -> tuple[int, ...]:
        endpoints, address = self._endpoints, self._client.address
        body = {"model": self._model, endpoints.text: text, **(dict(endpoints.options) if plain else {})}
        answer = self._client.post(address.root + endpoints.encode, body)
        tokens = select_part(answer, "tokens", server=address.host)
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise missing_error("tokens", address.host)
        return tuple(tokens)


def server_tokenizer(client: Client, model: str, name: str) -> ServerTokenizer | None:
    """Return the tokenizer of a server, if it has an endpoint for it."""
    for endpoints in _ENDPOINTS:
        try:
            return ServerTokenizer(client, model, endpoints, name)
        except ServerError as error:
            # A refusal, or an answer of another shape (without a status), means another kind of server.
            if not error.reached or (error.status is not None and not 400 <= error.status < 500):
                raise
    return None


def tokenizer_identity(tokenizer: Tokenizer) -> str:
    """Return a hash of how a tokenizer splits texts: the same for the server's and for a local copy of it."""
    tokens = repr([tokenizer.encode(text) for text in _SAMPLES])
    return hashlib.sha256(tokens.encode()).hexdigest()


def check_same_tokens(tokenizer: Tokenizer, server: Tokenizer) -> None:
    """Check that the named tokenizer splits texts as the server does."""
    for text in _SAMPLES:
        if tokenizer.encode(text) != server.encode(text):
            raise TokenizationError(
                f"{tokenizer.name} is not the server's tokenizer: they split {text!r} differently",
                hint="name the tokenizer of the model with --server tokenizer=…, or leave it out to use the server's",
            )
