"""From a block of text to paragraphs of sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from zicl.corpus.splitter import Splitter

# Tidied blocks to the paragraphs of each, in their order; a block's paragraphs depend on nothing else.
SplitMany = Callable[[Iterable[str]], Iterator[list[list[str]]]]
# A block without blank lines is cut after this many sentences, so that neighbours stay close.
LONGEST_PARAGRAPH = 20


def tidy(text: str) -> str:
    r"""One line, single spaces.

    >>> tidy(" so\n  good ")
    'so good'
    """
    return " ".join(text.split())


def paragraphs(tidied: str, split: Splitter) -> Iterator[list[str]]:
    """The sentences of a tidied block in order, at most twenty to a paragraph.

    >>> [len(p) for p in paragraphs("x. " * 45, lambda text: text.split())]
    [20, 20, 5]
    """
    sentences = split(tidied)
    for start in range(0, len(sentences), LONGEST_PARAGRAPH):
        yield sentences[start : start + LONGEST_PARAGRAPH]


def in_turn(split: Splitter) -> SplitMany:
    """Blocks split one after the other.

    >>> list(in_turn(str.split)(["a b", "c"]))
    [[['a', 'b']], [['c']]]
    """
    return lambda texts: (list(paragraphs(text, split)) for text in texts)
