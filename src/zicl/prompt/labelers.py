"""Labels for the demonstrations: random or gold, shown as original words, random words or synonyms."""

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

# What each label may be shown as.
Words = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class AssignedLabel:
    """A demonstration's label, the words it is shown as, and how sure a labeler is of it that is not guessing."""

    label: str
    words: str
    confidence: float | None = None


class Labeler(Protocol):
    """Gives each demonstration a label; ``words`` maps labels to what is shown.

    Of ``candidates`` times k sentences those with the surest labels are shown.
    """

    @property
    def candidates(self) -> int:
        """How many sentences are labelled for each that is shown."""
        ...

    @property
    def words(self) -> Words:
        """What each label is shown as."""
        ...

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """A label for each of ``rows``, nearest first."""
        ...


@dataclass(frozen=True)
class RandomLabels:
    """A label a demonstration, drawn uniformly: independently, or ``balanced``, every label as often as the others."""

    words: Words
    balanced: bool = False
    candidates: ClassVar[int] = 1

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """Drawn from the nearest on, so that a larger k keeps the nearer ones' labels."""
        generator, drawn = rng(seed, key, "labels"), list[AssignedLabel]()
        for name in islice(self._names(generator), len(rows)):
            shown = self.words[name]
            drawn.append(
                AssignedLabel(name, shown[int(generator.integers(len(shown)))] if len(shown) > 1 else shown[0])
            )
        return drawn

    def _names(self, generator: np.random.Generator) -> Iterator[str]:
        names = list(self.words)
        while True:
            if self.balanced:
                # Round after round of all labels: the counts never differ by more than one.
                yield from (names[int(n)] for n in generator.permutation(len(names)))
            else:
                yield names[int(generator.integers(len(names)))]


@dataclass(frozen=True)
class GoldLabels:
    """The labels that training examples have; ``by_row`` holds them."""

    words: Words
    by_row: Sequence[str]
    candidates: ClassVar[int] = 1

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """The true label of each row."""
        return [AssignedLabel(self.by_row[row], self.words[self.by_row[row]][0]) for row in rows]


@dataclass(frozen=True)
class NoLabels:
    """No label for anybody: the sentences are shown alone."""

    words: Words = field(default_factory=dict)
    candidates: ClassVar[int] = 1

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """Nothing for each row."""
        return [AssignedLabel("", "")] * len(rows)


def original_words(labels: Labels) -> Words:
    """The label words themselves."""
    return {label.name: (label.words,) for label in labels}


def synonym_words(labels: Labels) -> Words:
    """Synonyms of the labels: the model cannot copy them into its answer."""
    missing = [label.name for label in labels if not label.synonyms]
    if missing:
        raise SynonymError(
            f"no synonym is known for: {', '.join(missing)}",
            hint="name one for each, e.g. " + " ".join(f"--synonyms {name}=…" for name in missing),
        )
    return {label.name: label.synonyms for label in labels}


def random_words(labels: Labels, unigrams: Sequence[str], seed: int) -> Words:
    """A one-to-one map from labels to random English words, one map a seed."""
    taken = {word.casefold() for label in labels for word in (label.name, label.words, *label.synonyms)}
    usable = sorted(set(unigrams) - taken)
    order = rng(seed, "random words").choice(len(usable), len(labels), replace=False)
    return {label.name: (usable[int(n)],) for label, n in zip(labels, order, strict=True)}


# -- Pseudo-options: where every text has options of its own, a demonstration is answered with a sentence near it.


# Sentences this far away in the paragraph are still about the same thing.
_REACH = 3


@dataclass(frozen=True, eq=False)
class NeighbourOptions:
    """For each demonstration a sentence near it in its paragraph, drawn at random.

    ``shorten`` cuts it: raw text has sentences of a page, which would leave a prompt no room.
    """

    index: Searchable
    shorten: Callable[[str], str]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    candidates: ClassVar[int] = 1

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[AssignedLabel]:
        """A neighbouring sentence for each row."""
        generator, drawn = rng(seed, key, "options"), list[AssignedLabel]()
        for row in rows:
            near = self.index.around(row, _REACH)
            if not near:
                raise RetrievalError(
                    f"sentence {row} stands alone in its paragraph: there is no sentence near it to answer with",
                    hint="use the retrieval 'physical', which takes no such sentence",
                )
            chosen = near[int(generator.integers(len(near)))]
            drawn.append(AssignedLabel(f"sentence {chosen}", self.shorten(str(self.index.sentence(chosen).text))))
        return drawn
