"""Where texts stand in a corpus: how near its nearest sentence is, and whether the nearest have neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from zicl._util.progress import Report, silent
from zicl.config import Retrieval
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import Filter, Query
from zicl.retrieve.strategies.nearest import Nearest

STAGE = "searching the corpus"


@dataclass(frozen=True)
class Surroundings:
    """Of each text the cosine of the nearest sentence that may be shown; of its k nearest, whether each stands alone.

    The nearest sentences of all texts stand one after the other in ``alone``.
    """

    nearest: tuple[float, ...]
    alone: tuple[bool, ...]


def look_around(index: Searchable, texts: Sequence[str], settings: Retrieval, report: Report = silent) -> Surroundings:
    """Search the corpus as the retrieval methods do: a text never finds itself, nor the document it comes from."""
    nearest, alone, one = list[float](), list[bool](), Nearest(exclude_self=settings.exclude_self)
    for done, text in enumerate(texts):
        report(STAGE, done, len(texts))
        query = Query(text)
        nearest += [found.similarity or 0.0 for found in one.retrieve(index, query, 1)]
        hits = Filter(index, query, exclude_self=settings.exclude_self).hits()
        alone += [index.neighbour(hit.row) is None for hit in islice(hits, settings.k)]
    report(STAGE, len(texts), len(texts))
    return Surroundings(tuple(nearest), tuple(alone))
