"""What a retrieval method is given and gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from zicl._util.random import rng
from zicl._util.registry import Registry
from zicl.exceptions import RetrievalError
from zicl.inputs.pair import Text, text_key, text_parts
from zicl.retrieve.index import Hit, Searchable

# The item of inputs that share their demonstrations: sentences and labels are drawn once per seed.
SHARED_ITEM = "all inputs"


@dataclass(frozen=True)
class Query:
    """A test input. ``item`` names it for the random draws: by default it is the text itself.

    ``near`` is the text that is searched for in its place, where inputs share their demonstrations.
    """

    text: Text
    seed: int = 0
    item: str | None = None
    near: Text | None = None

    @property
    def key(self) -> str:
        """The string that random draws are derived from."""
        return text_key(self.text) if self.item is None else self.item


@dataclass(frozen=True)
class Retrieved:
    """The row to show, and the nearest sentence it was found through (None where none was used)."""

    row: int
    nearest: int | None = None
    similarity: float | None = None


class Retriever(Protocol):
    """Find exactly ``k`` rows for a query, nearest first. A frozen value: results are cached by it.

    Its traits say what depends on it: ``draws`` if rows are drawn at random, ``shared`` if all inputs get the same
    rows, and ``needs_neighbours`` if it uses paragraphs or domains, which single examples do not have.
    """

    draws: ClassVar[bool]
    shared: ClassVar[bool]
    needs_neighbours: ClassVar[bool]

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return exactly ``k`` rows with distinct texts, or raise an error."""
        ...


class CandidateFilter:
    """Keeps the input itself out of its demonstrations, and texts distinct.

    Left out is every sentence of the document whose whole text is the input, and of the first one in which the input
    stands as a sentence: a ticket must not demonstrate itself.
    """

    def __init__(self, index: Searchable, query: Query, *, exclude_self: bool = True) -> None:
        self._index = index
        # Of a pair: its two halves, and the document that both of them are.
        parts = (*text_parts(query.text), str(query.text)) if exclude_self else ()
        self._documents = {document for part in parts for document in index.documents_like(part)}
        # The input's own text counts as shown: it may also stand, as a duplicate, in a document of others.
        self._used = {_plain_text(part) for part in parts}

        self._near = query.text if query.near is None else query.near
        self._own = set[int]()

    def hits(self) -> Iterator[Hit]:
        """The nearest sentences that are not the input itself."""
        return (hit for hit in self._index.nearest(self._near) if self.allows(hit.row))

    def allows(self, row: int) -> bool:
        """Whether a row may be used, as a nearest sentence or as a demonstration."""
        if not self._documents or self._index.sentence(row).document not in self._documents:
            return True
        self._own.add(row)
        return False

    def take(self, row: int) -> bool:
        """Whether a row may be shown; it then counts as shown, and no other with its text may be."""
        text = _plain_text(self._index.sentence(row).text)
        if text in self._used or not self.allows(row):
            return False
        self._used.add(text)
        return True

    def too_few(self, found: int, k: int, why: str, hint: str) -> RetrievalError:
        """The error for fewer demonstrations than asked for, which may be for want of other documents."""
        if self._own:
            why += f"; {len(self._own)} sentences were left out, as they are of the document the text itself comes from"
            hint += "; or build the corpus with --lines, if each line of a file is a text of its own"
        return too_few_error(found, k, why, hint)


def _plain_text(text: Text) -> str:
    return " ".join(str(text).split()).casefold()


def sort_by_similarity(found: list[Retrieved]) -> list[Retrieved]:
    """Nearest first. An approximate index may have given a nearer sentence late."""
    return sorted(found, key=lambda item: -(item.similarity or 0.0))


def too_few_error(found: int, k: int, why: str, hint: str) -> RetrievalError:
    """The error for fewer demonstrations than asked for."""
    return RetrievalError(f"only {found} of k = {k} demonstrations were found: {why}", hint=hint)


def draw_rows(query: Query, purpose: str, count: int) -> Iterator[int]:
    """Numbers below ``count`` in random order, each once; the first ones do not depend on how many are taken."""
    generator, seen = rng(query.seed, query.key, purpose), set[int]()
    while len(seen) < count // 2:
        number = int(generator.integers(count))
        if number not in seen:
            seen.add(number)
            yield number
    rest = [number for number in range(count) if number not in seen]
    yield from (int(number) for number in generator.permutation(rest))


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
