"""Sentence splitters by name."""

from __future__ import annotations

from collections.abc import Callable

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
