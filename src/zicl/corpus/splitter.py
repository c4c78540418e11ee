"""Sentence splitters by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from zicl._util.registry import Registry

Splitter = Callable[[str], list[str]]


def sentencex() -> Splitter:
    """sentencex: fast, and right on abbreviations, lowercase and tokenised text."""
    from sentencex import segment

    def split(text: str) -> list[str]:
        return [sentence for piece in segment("en", text) if (sentence := piece.strip())]

    return split


def punkt() -> Splitter:
    """NLTK's Punkt, which the paper used."""
    from nltk.tokenize.punkt import PunktTokenizer

    from zicl._util.catalog import nltk_folder

    nltk_folder("punkt")
    tokenizer = PunktTokenizer("english")

    def split(text: str) -> list[str]:
        return [sentence for piece in tokenizer.tokenize(text) if (sentence := piece.strip())]

    return split


SPLITTERS = Registry("splitter", {"sentencex": "zicl.corpus.splitter:sentencex", "punkt": "zicl.corpus.splitter:punkt"})


def get_splitter(name: str) -> Splitter:
    """A splitter by name."""
    make: Callable[[], Splitter] = SPLITTERS.get(name)
    return make()


# -- From a block of text to paragraphs of sentences.


# Tidied blocks to the paragraphs of each, in their order; a block's paragraphs depend on nothing else.
SplitMany = Callable[[Iterable[str]], Iterator[list[list[str]]]]
# A block without blank lines is cut after this many sentences, so that neighbours stay close.
LONGEST_PARAGRAPH = 20


def normalize_space(text: str) -> str:
    r"""One line, single spaces.

    >>> normalize_space(" so\n  good ")
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


def split_locally(split: Splitter) -> SplitMany:
    """Blocks split one after the other.

    >>> list(split_locally(str.split)(["a b", "c"]))
    [[['a', 'b']], [['c']]]
    """
    return lambda texts: (list(paragraphs(text, split)) for text in texts)
