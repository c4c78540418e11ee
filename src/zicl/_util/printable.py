"""Look for characters that nobody sees, in text that may come from a stranger; control characters are shown."""

from __future__ import annotations

import re

# Control characters but line breaks and tabs, marks that change the direction of writing, and what is no character.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_HALVES = re.compile("[\ud800-\udfff]")
# What Unicode calls ignorable by default, but for the tags that flags are made of; and two that are drawn as blanks.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0100-\U000e01ef]"
)


def has_half_character(text: str) -> bool:
    r"""Return whether a text has half of a character in it (a lone surrogate), which no file could hold.

    >>> has_half_character("\ud83d"), has_half_character("\U0001f600")
    (True, False)
    """
    return _HALVES.search(text) is not None


def visible(text: str) -> str:
    r"""Return a text without the characters that are not drawn, and without white space around it.

    >>> visible("great\u200b"), visible(" \u2060")
    ('great', '')
    """
    return _INVISIBLE.sub("", text).strip()


def printable(text: str) -> str:
    r"""Return a text in which control characters are written as escapes, but for line breaks and tabs.

    >>> print(printable("a red \x1b[31mlabel"))
    a red \x1b[31mlabel
    """
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
