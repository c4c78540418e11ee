"""What a prompt needs of a tokenizer, and texts that carry their tokens."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from zicl.exceptions import TokenizationError


class Tokenizer(Protocol):
    """Turns text into token ids and back, adding nothing of its own."""

    name: str
    bos: int | None

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of ``text``, no special ones."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ``tokens``, nothing cleaned up."""
        ...


@dataclass(frozen=True)
class Segment:
    """A piece of text with its tokens. A prompt is split into tokens exactly where its text is split."""

    text: str
    tokens: tuple[int, ...]

    def __add__(self, other: Segment) -> Segment:
        return Segment(self.text + other.text, self.tokens + other.tokens)

    def __len__(self) -> int:
        return len(self.tokens)


EMPTY = Segment("", ())


def tokenize(tokenizer: Tokenizer, text: str) -> Segment:
    """Encode ``text`` and check that its tokens decode to it again.

    A tokenizer that normalises Unicode (GPT-NeoX's does) is followed: the segment's text is then the
    normalised one, which is what the model reads.
    """
    tokens = tokenizer.encode(text)
    back = tokenizer.decode(tokens)
    if back == text:
        return Segment(text, tokens)
    if any(back == unicodedata.normalize(form, text) for form in ("NFC", "NFKC", "NFD", "NFKD")):
        return Segment(back, tokens)
    raise TokenizationError(
        f"the tokenizer of {tokenizer.name} does not give this text back: {text[:80]!r} became {back[:80]!r}",
        hint="use a model with a lossless (byte-level) tokenizer, or take the unusual characters out",
    )


def truncate(tokenizer: Tokenizer, text: str, limit: int) -> Segment:
    """The longest beginning of ``text`` of at most ``limit`` tokens that still decodes to itself.

    A cut inside a character of several bytes moves back to the character's start.
    """
    whole = tokenize(tokenizer, text)
    count = min(limit, len(whole))
    while len(whole) > limit and count > 0:
        # Tokens of the shortened text can differ at its end, so it is encoded anew and checked.
        shorter = tokenizer.decode(whole.tokens[:count]).rstrip("\ufffd").rstrip()
        candidate = tokenize(tokenizer, shorter)
        # Of several characters in single bytes none is read where the last is cut.
        if shorter and len(candidate) <= limit:
            return candidate
        count -= 1
    return whole if len(whole) <= limit else EMPTY
