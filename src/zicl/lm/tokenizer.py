"""A transformers tokenizer that adds and cleans up nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zicl.exceptions import ModelError

# Some tokenizers put a space before whatever they are given; behind this character they do not.
ANCHOR = "\n"


def behind_anchor(text: str) -> str:
    """What stands behind the anchor.

    Half a character may swallow it: what is left then are marks of broken characters.
    """
    return text[text.find(ANCHOR) + 1 :]


class PlainTokenizer:
    """Encodes text as text: no special token is added, and one written out in the text stays text."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer = tokenizer
        self.name = name
        self.bos: int | None = tokenizer.bos_token_id
        self._anchor: tuple[int, ...] = ()
        # Twice, because decoding takes a space off the beginning of a text, and only there.
        if self.decode(self._raw("a") * 2) != "aa":
            self._anchor = self._raw(ANCHOR)
            if self.decode(self.encode("a") * 2) != "aa":
                raise ModelError(
                    f"the tokenizer of {name} does not give text back as it was",
                    hint="use a model with a lossless (byte-level) tokenizer",
                )

    def _raw(self, text: str) -> tuple[int, ...]:
        ids = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return tuple(ids["input_ids"])

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of ``text``, no special ones."""
        if not self._anchor or not text:
            return self._raw(text)
        return self._raw(ANCHOR + text)[len(self._anchor) :]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ``tokens``, nothing cleaned up."""
        anchored = [*self._anchor, *tokens]
        text: str = self._tokenizer.decode(anchored, clean_up_tokenization_spaces=False)
        return behind_anchor(text) if self._anchor else text

    def chat(self, asked: str) -> tuple[int, ...] | None:
        """The tokens of a user's turn through the chat template, up to the answer; None if there is no template."""
        if not getattr(self._tokenizer, "chat_template", None):
            return None
        turn = [{"role": "user", "content": asked}]
        found = self._tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=True, return_dict=True)
        return tuple(found["input_ids"])

    def adds_bos(self) -> bool:
        """Whether the tokenizer itself puts its beginning-of-sequence token before a text."""
        return self.bos is not None and list(self._tokenizer("a")["input_ids"][:1]) == [self.bos]
