"""Two texts that are classified together: a premise and a hypothesis, a question and an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """Two texts to classify together; ``str`` reads them one after the other.

    >>> pair = Pair("It rains.", "The street is wet.")
    >>> str(pair), text_parts(pair)
    ('It rains. The street is wet.', ('It rains.', 'The street is wet.'))
    """

    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.first} {self.second}"

    def strip(self) -> Pair:
        """Return the pair without white space around its texts, as ``str.strip`` does."""
        return Pair(self.first.strip(), self.second.strip())


# Whatever takes a text takes a pair.
Text = str | Pair


def text_parts(text: Text) -> tuple[str, ...]:
    """Return the two texts of a pair, or the one text."""
    return (text.first, text.second) if isinstance(text, Pair) else (text,)


def text_key(text: Text) -> str:
    """Return a string that identifies a text or a pair, from which random draws and ids are derived.

    >>> text_key(Pair("a", "b c")) != text_key(Pair("a b", "c"))
    True
    """
    # ASCII's record separator, which check_text lets into no text.
    return "\x1e".join(text_parts(text))
