"""Segments: pieces of text with their tokens, and the tokenizer interface they need."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from zicl.exceptions import TokenizationError


class Tokenizer(Protocol):
    """Turn text into token ids and back, without adding special tokens."""

    name: str
    bos: int | None

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of ``text``, without special ones."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of ``tokens`` as it is, without clean-up."""
        ...


@dataclass(frozen=True)
class Segment:
    """A piece of text with its tokens. A prompt's tokens are split exactly where its text is split."""

    text: str
    tokens: tuple[int, ...]

    def __add__(self, other: Segment) -> Segment:
        return Segment(self.text + other.text, self.tokens + other.tokens)

    def __len__(self) -> int:
        return len(self.tokens)


EMPTY = Segment("", ())


def tokenize(tokenizer: Tokenizer, text: str) -> Segment:
    """Encode ``text`` and check that its tokens decode to it again.

    If the tokenizer normalises Unicode (GPT-NeoX's does), the segment holds the normalised text, which is what the
    model reads.
    """
    tokens = tokenizer.encode(text)
    back = tokenizer.decode(tokens)
    if back == text:
        return Segment(text, tokens)
    if any(back == unicodedata.normalize(form, text) for form in ("NFC", "NFKC", "NFD", "NFKD")):
        return Segment(back, tokens)
    raise TokenizationError(
        f"the tokenizer of {tokenizer.name} does not give this text back: {text[:80]!r} became {back[:80]!r}",
        hint="use a model with a lossless (byte-level) tokenizer, or remove the unusual characters",
    )


def truncate(tokenizer: Tokenizer, text: str, limit: int) -> Segment:
    """Return the longest prefix of ``text`` with at most ``limit`` tokens that decodes to itself.

    A cut inside a multi-byte character moves back to the start of the character.
    """
    full = tokenize(tokenizer, text)
    count = min(limit, len(full))
    while len(full) > limit and count > 0:
        # The tokens of the shortened text can differ at its end, so it is encoded again and checked.
        shorter = tokenizer.decode(full.tokens[:count]).rstrip("\ufffd").rstrip()
        candidate = tokenize(tokenizer, shorter)
        # Cutting inside a multi-byte character can leave no complete character at all.
        if shorter and len(candidate) <= limit:
            return candidate
        count -= 1
    return full if len(full) <= limit else EMPTY
