"""Show text that may come from a stranger: control characters would reach the terminal."""

from __future__ import annotations

import re

# Control characters but line breaks and tabs, marks that change the direction of writing, and what is no character.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return a text in which control characters are written as escapes, but for line breaks and tabs.

    >>> print(printable("a red \x1b[31mlabel"))
    a red \x1b[31mlabel
    """
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
