"""Cut very long texts before they are tokenized: a model reads the first few hundred tokens, a tokenizer all of it."""

from __future__ import annotations

from collections.abc import Callable

# Characters to tokenize per token that is kept. Prose has about four; where they are not enough, four times as many.
_FIRST, _MOST = 16, 4096
# Tokens that have to follow those that are kept. The cut changes only the last word: WordPiece takes one of more than
# 100 characters as unknown, and otherwise as at most as many pieces.
_AFTER = 128


def beginning(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return a text, or as much of it as has the same first ``limit`` tokens, and more tokens than that.

    ``count`` returns the number of tokens of a text. The cut is made where a word ends. Only a text with fewer than one
    token in 4,096 characters, such as control characters that a tokenizer drops, may lose some that would have counted.

    >>> len(beginning("word " * 1_000_000, 10, lambda text: len(text.split())))
    2044
    """
    size = max(limit, _AFTER) * _FIRST
    while size < len(text):
        cut = text[:size]
        end = max(cut.rfind(" "), cut.rfind("\n"))
        if end >= size // 2:
            cut = cut[:end].rstrip()
        if size >= max(limit, _AFTER) * _MOST or count(cut) >= limit + _AFTER:
            return cut
        size *= 4
    return text
