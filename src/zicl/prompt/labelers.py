"""Label demonstrations: random or gold labels, shown as original words, random words or synonyms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Protocol

import numpy as np

from zicl._util.random import rng
from zicl.exceptions import RetrievalError, SynonymError
from zicl.prompt.labels import Labels
from zicl.retrieve.index import Searchable

# The words that each label may be shown as.
Words = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class AssignedLabel:
    """A demonstration's label, the words that show it, and the labeler's confidence unless it is a random draw."""

    label: str
    words: str
    confidence: float | None = None


class Labeler(Protocol):
    """Give each demonstration a label."""

    @property
    def candidates(self) -> int:
        """Return how many sentences to label per demonstration; the most confident ones are shown."""
        ...

    @property
    def words(self) -> Words:
        """Return the words that each label may be shown as."""
        ...

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """Return a label for each of ``rows``, nearest first."""
        ...


@dataclass(frozen=True)
class RandomLabels:
    """Draw labels uniformly: independently, or ``balanced``, with every label equally often."""

    words: Words
    balanced: bool = False
    candidates: ClassVar[int] = 1

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """Draw labels from the nearest row on, so that a larger k keeps those of the nearer rows."""
        generator, drawn = rng(seed, key, "labels"), list[AssignedLabel]()
        for name in islice(self._names(generator), len(rows)):
            words = self.words[name]
            chosen = int(generator.integers(len(words))) if len(words) > 1 else 0
            drawn.append(AssignedLabel(name, words[chosen]))
        return drawn

    def _names(self, generator: np.random.Generator) -> Iterator[str]:
        names = list(self.words)
        while True:
            if self.balanced:
                # In rounds of all labels: the counts never differ by more than one.
                yield from (names[int(n)] for n in generator.permutation(len(names)))
            else:
                yield names[int(generator.integers(len(names)))]


@dataclass(frozen=True)
class GoldLabels:
    """Use the gold labels of training examples, which ``by_row`` holds."""

    words: Words
    by_row: Sequence[str]
    candidates: ClassVar[int] = 1

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """Return the gold label of each row."""
        return [AssignedLabel(self.by_row[row], self.words[self.by_row[row]][0]) for row in rows]


@dataclass(frozen=True)
class NoLabels:
    """Show sentences without labels."""

    words: Words = field(default_factory=dict)
    candidates: ClassVar[int] = 1

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """Return an empty label for each row."""
        return [AssignedLabel("", "")] * len(rows)


def original_words(labels: Labels) -> Words:
    """Return the words of the labels themselves."""
    return {label.name: (label.words,) for label in labels}


def synonym_words(labels: Labels) -> Words:
    """Return the synonyms of the labels: the model cannot copy them into its answer."""
    missing = [label.name for label in labels if not label.synonyms]
    if missing:
        raise SynonymError(
            f"no synonym is known for: {', '.join(missing)}",
            hint="name one for each, e.g. " + " ".join(f"--synonyms {name}=…" for name in missing),
        )
    return {label.name: label.synonyms for label in labels}


def random_words(labels: Labels, unigrams: Sequence[str], seed: int) -> Words:
    """Return a one-to-one map from labels to random English words; it depends on the seed."""
    taken = {word.casefold() for label in labels for word in (label.name, label.words, *label.synonyms)}
    usable = sorted(set(unigrams) - taken)
    order = rng(seed, "random words").choice(len(usable), len(labels), replace=False)
    return {label.name: (usable[int(n)],) for label, n in zip(labels, order, strict=True)}


# Sentences at most this far away in the paragraph are about the same subject.
_REACH = 3


@dataclass(frozen=True, eq=False)
class NeighbourOptions:
    """Show a random nearby sentence of the paragraph as the answer, for options that differ from text to text.

    ``shorten`` cuts it: raw text has sentences of a page, which would leave no room in the prompt.
    """

    index: Searchable
    shorten: Callable[[str], str]
    words: Words = field(default_factory=dict)
    candidates: ClassVar[int] = 1

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """Draw a nearby sentence for each row."""
        generator, drawn = rng(seed, key, "options"), list[AssignedLabel]()
        for row in rows:
            near = self.index.around(row, _REACH)
            if not near:
                raise RetrievalError(
                    f"sentence {row} is alone in its paragraph: there is no sentence near it to show as an answer",
                    hint="`retrieval.method='physical'` skips such sentences",
                )
            chosen = near[int(generator.integers(len(near)))]
            drawn.append(AssignedLabel(f"sentence {chosen}", self.shorten(str(self.index.sentence(chosen).text))))
        return drawn
