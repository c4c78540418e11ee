"""A part of an index to search in: a share of its paragraphs, or all but some domains; nothing is embedded again."""

from __future__ import annotations

from collections.abc import Sequence

from zicl._util.registry import did_you_mean
from zicl.corpus.subset import Part
from zicl.exceptions import ConfigError, EmptyCorpusError
from zicl.retrieve.index import Index


def subset(index: Index, *, share: float = 1.0, without: Sequence[str] = (), seed: int = 0) -> Index:
    """The index restricted to a share of each domain's paragraphs, without some domains; rows keep their numbers.

    A smaller share is contained in a larger one with the same seed. ``subset(index, share=0.1, without=["imdb"])``
    """
    before = index.corpus.part
    if before.share < 1:
        raise ConfigError("this index is a sample already", hint="take the share of the whole index")
    for name in without:
        if name not in index.corpus.domains:
            raise did_you_mean("domain", name, index.corpus.domains)
    left_out = tuple(dict.fromkeys([*before.without, *without]))
    part = Part(left_out, share, seed if share < 1 else 0)
    if part == before:
        return index
    smaller = index.only(part)
    if not smaller.corpus.sentences:
        raise EmptyCorpusError(
            f"without {', '.join(left_out)} no sentence of {index.corpus.path} is left", hint="leave out fewer domains"
        )
    return smaller
