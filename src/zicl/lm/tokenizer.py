"""A transformers tokenizer that adds no special tokens and cleans up nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zicl.exceptions import ModelError

# Some tokenizers prepend a space to every text. With this character in front of the text, the space comes before it.
ANCHOR = "\n"


def after_anchor(text: str) -> str:
    """Return the part of a decoded text after the anchor.

    A truncated multi-byte character may swallow the anchor; replacement characters are left then.
    """
    return text[text.find(ANCHOR) + 1 :]


class PlainTokenizer:
    """Encode text literally: no special token is added, and one that is spelled out in the text stays text."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer = tokenizer
        self.name = name
        self.bos: int | None = tokenizer.bos_token_id
        self._anchor: tuple[int, ...] = ()
        # Twice, because decoding strips a space at the beginning of a text, and only there.
        if self.decode(self._raw("a") * 2) != "aa":
            self._anchor = self._raw(ANCHOR)
            if self.decode(self.encode("a") * 2) != "aa":
                raise ModelError(
                    f"the tokenizer of {name} does not decode to the text that was encoded",
                    hint="use a model with a lossless (byte-level) tokenizer",
                )

    def _raw(self, text: str) -> tuple[int, ...]:
        ids = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return tuple(ids["input_ids"])

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of ``text``, without special tokens."""
        if not self._anchor or not text:
            return self._raw(text)
        return self._raw(ANCHOR + text)[len(self._anchor) :]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of ``tokens``, without any clean-up."""
        anchored = [*self._anchor, *tokens]
        text: str = self._tokenizer.decode(anchored, clean_up_tokenization_spaces=False)
        return after_anchor(text) if self._anchor else text

    def chat(self, message: str) -> tuple[int, ...] | None:
        """Return the tokens of a user message in the chat template, up to the answer; None without a template."""
        if not getattr(self._tokenizer, "chat_template", None):
            return None
        turn = [{"role": "user", "content": message}]
        encoded = self._tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=True, return_dict=True)
        return tuple(encoded["input_ids"])

    def adds_bos(self) -> bool:
        """Return whether the tokenizer by default prepends its beginning-of-sequence token."""
        return self.bos is not None and list(self._tokenizer("a")["input_ids"][:1]) == [self.bos]
