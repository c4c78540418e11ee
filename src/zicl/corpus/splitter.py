"""Split blocks of text into paragraphs of sentences, with a sentence splitter chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from zicl._util.registry import Registry

# From a text to its sentences.
Splitter = Callable[[str], list[str]]
# From blocks to the paragraphs of each, in order; the paragraphs of a block depend on nothing else.
SplitMany = Callable[[Iterable[str]], Iterator[list[list[str]]]]
# A block is split after this many sentences, so that physical neighbours are about the same thing.
LONGEST_PARAGRAPH = 20
SPLITTERS = Registry("splitter", {"sentencex": "zicl.corpus.splitter:sentencex", "punkt": "zicl.corpus.splitter:punkt"})


def sentencex() -> Splitter:
    """Return the sentencex splitter: fast, and right on abbreviations, lowercase and tokenised text."""
    from sentencex import segment

    def split(text: str) -> list[str]:
        return [sentence for piece in segment("en", text) if (sentence := piece.strip())]

    return split


def punkt() -> Splitter:
    """Return NLTK's Punkt splitter, which the paper used."""
    from nltk.tokenize.punkt import PunktTokenizer

    from zicl._util.catalog import nltk_folder

    nltk_folder("punkt")
    tokenizer = PunktTokenizer("english")

    def split(text: str) -> list[str]:
        return [sentence for piece in tokenizer.tokenize(text) if (sentence := piece.strip())]

    return split


def get_splitter(name: str) -> Splitter:
    """Return a splitter by name."""
    make: Callable[[], Splitter] = SPLITTERS.get(name)
    return make()


def normalize_space(text: str) -> str:
    r"""Return the text on one line with single spaces.

    >>> normalize_space(" so\n  good ")
    'so good'
    """
    return " ".join(text.split())


def paragraphs(text: str, split: Splitter) -> Iterator[list[str]]:
    """Yield the sentences of a block in order, at most ``LONGEST_PARAGRAPH`` per paragraph.

    >>> [len(p) for p in paragraphs("x. " * 45, lambda text: text.split())]
    [20, 20, 5]
    """
    sentences = split(text)
    for start in range(0, len(sentences), LONGEST_PARAGRAPH):
        yield sentences[start : start + LONGEST_PARAGRAPH]


def split_locally(split: Splitter) -> SplitMany:
    """Return a function that splits blocks one after the other in this process.

    >>> list(split_locally(str.split)(["a b", "c"]))
    [[['a', 'b']], [['c']]]
    """
    return lambda texts: (list(paragraphs(text, split)) for text in texts)
