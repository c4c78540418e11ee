"""What a retriever is given and returns, helpers to write one, and the table of all retrievers.

A retriever is a frozen dataclass with one method. This one finds the nearest sentences of one domain::

    @dataclass(frozen=True)
    class NewsOnly(Retriever):
        def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
            candidates = CandidateFilter(index, query)
            news = (
                Retrieved(hit.row, hit.row, hit.similarity)
                for hit in candidates.hits()
                if index.sentence(hit.row).domain == "news" and candidates.take(hit.row)
            )
            return candidates.collect(news, k, "the domain has no more sentences", "use a smaller k")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Protocol

from zicl._util.random import rng
from zicl._util.registry import Registry
from zicl.exceptions import RetrievalError
from zicl.inputs.files import detect_format, display_name
from zicl.inputs.pair import Text, text_key, text_parts
from zicl.retrieve.index import Hit, Index, Searchable

RETRIEVERS = Registry(
    "retriever",
    {
        "nearest": "zicl.retrieve.strategies.nearest:Nearest",
        "diverse": "zicl.retrieve.strategies.diverse:Diverse",
        "physical": "zicl.retrieve.strategies.physical:Physical",
        "random": "zicl.retrieve.strategies.random:Random",
        "domain-random": "zicl.retrieve.strategies.random:DomainRandom",
    },
)
# The item of inputs that share their demonstrations: sentences and labels are drawn once per seed.
SHARED_ITEM = "all inputs"


@dataclass(frozen=True)
class Query:
    """A test input to find demonstrations for.

    ``seed`` and ``item`` determine the random draws; by default ``item`` is the text. Where similar inputs share their
    demonstrations, ``search_text`` is the text that is searched for instead.
    """

    text: Text
    seed: int = 0
    item: str | None = None
    search_text: Text | None = None

    @property
    def key(self) -> str:
        """The string that random draws are derived from."""
        return text_key(self.text) if self.item is None else self.item


@dataclass(frozen=True)
class Retrieved:
    """The row of a demonstration, and the nearest sentence that led to it with its similarity (None without one)."""

    row: int
    nearest: int | None = None
    similarity: float | None = None


class Retriever(Protocol):
    """Finds ``k`` sentences for a query. Make it a frozen dataclass: results are cached by its value.

    The fields ``exclude_self`` and ``pool``, if it has them, are filled from the settings. Set the traits that apply.
    """

    draws: ClassVar[bool] = False
    """Rows are drawn at random: they depend on the seed."""
    shared: ClassVar[bool] = False
    """All inputs get the same rows, up to those that an input itself is in."""
    needs_neighbours: ClassVar[bool] = False
    """It uses paragraphs or domains, which single texts do not have."""

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return exactly ``k`` rows with distinct texts, nearest first, or raise a ``RetrievalError``."""
        ...


class CandidateFilter:
    """Keeps the input out of its demonstrations, and their texts distinct.

    All sentences of the document with the input's text are left out, and those of the first document that has the input
    as a sentence: a ticket must not demonstrate itself.
    """

    def __init__(self, index: Searchable, query: Query, *, exclude_self: bool = True) -> None:
        self._index = index
        # For a pair: its two texts, and both as one document.
        parts = (*text_parts(query.text), str(query.text)) if exclude_self else ()
        self._documents = {document for part in parts for document in index.documents_like(part)}
        # The input counts as taken: other documents may repeat it.
        self._taken = {_normalize(part) for part in parts}
        self._text = query.text if query.search_text is None else query.search_text
        self._excluded = set[int]()

    def hits(self) -> Iterator[Hit]:
        """Yield the sentences nearest to the query, nearest first, that may be used."""
        return (hit for hit in self._index.nearest(self._text) if self.allows(hit.row))

    def allows(self, row: int) -> bool:
        """Return whether a row may be used: as a demonstration, or as the nearest sentence that leads to one."""
        if not self._documents or self._index.sentence(row).document not in self._documents:
            return True
        self._excluded.add(row)
        return False

    def take(self, row: int) -> bool:
        """Return whether a row may be a demonstration, and if so mark its text as taken."""
        text = _normalize(self._index.sentence(row).text)
        if text in self._taken or not self.allows(row):
            return False
        self._taken.add(text)
        return True

    def collect(self, candidates: Iterable[Retrieved], k: int, why: str, hint: str) -> list[Retrieved]:
        """Return the first ``k`` candidates, nearest first; if there are fewer, raise the error for that."""
        result = list(islice(candidates, k))
        if len(result) < k:
            raise self.too_few(len(result), k, why, hint)
        return sort_by_similarity(result)

    def too_few(self, found: int, k: int, why: str, hint: str) -> RetrievalError:
        """Return the error for fewer than ``k`` demonstrations; it mentions sentences that were left out."""
        if self._excluded:
            why += f"; {len(self._excluded)} sentences were left out, as they are in the same document as the text"
            if self._joins_lines():
                hint += "; or build the corpus with --lines, if each line of a file is a separate text"
        return too_few_error(found, k, why, hint)

    def _joins_lines(self) -> bool:
        """Return whether sentences were left out of .txt files, in which several lines are one document."""
        separate = isinstance(self._index, Index) and self._index.corpus.manifest["options"].get("lines", False)
        sources = {self._index.sentence(row).source for row in self._excluded}
        return not separate and any(name == display_name("-") or detect_format(name) == "txt" for name in sources)


def _normalize(text: Text) -> str:
    return " ".join(str(text).split()).casefold()


def too_few_error(found: int, k: int, why: str, hint: str) -> RetrievalError:
    """Return the error for fewer than ``k`` demonstrations."""
    return RetrievalError(f"only {found} of k = {k} demonstrations were found: {why}", hint=hint)


def sort_by_similarity(found: list[Retrieved]) -> list[Retrieved]:
    """Sort by decreasing similarity: an approximate index may return a nearer sentence late."""
    return sorted(found, key=lambda item: -(item.similarity or 0.0))


def draw_rows(query: Query, purpose: str, count: int) -> Iterator[int]:
    """Yield the numbers below ``count`` in random order; the first ones do not depend on how many are taken."""
    generator, seen = rng(query.seed, query.key, purpose), set[int]()
    # Drawing one at a time is cheap while most numbers are new.
    while len(seen) < count // 2:
        number = int(generator.integers(count))
        if number not in seen:
            seen.add(number)
            yield number
    rest = [number for number in range(count) if number not in seen]
    yield from (int(number) for number in generator.permutation(rest))
