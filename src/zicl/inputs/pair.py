"""Two texts that are classified together: a premise and a hypothesis, a question and an answer.

A pair travels as one text with a separator that no text has, so that whatever takes a text takes a pair.
"""

from __future__ import annotations

# The record separator of ASCII.
SEPARATOR = "\x1e"


def join(first: str, second: str) -> str:
    r"""The two as one text.

    >>> halves(join("It rains.", "The street is wet."))
    ('It rains.', 'The street is wet.')
    """
    return f"{first.strip()}{SEPARATOR}{second.strip()}"


def is_pair(text: str) -> bool:
    """Whether a text is two."""
    return SEPARATOR in text


def halves(text: str) -> tuple[str, ...]:
    """The two texts of a pair, or the one text there is."""
    return tuple(text.split(SEPARATOR, 1))


def plain(text: str) -> str:
    """A pair as it is read aloud: one after the other."""
    return text.replace(SEPARATOR, " ")
