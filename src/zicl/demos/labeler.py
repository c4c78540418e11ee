"""Labels for the demonstrations: random or gold, shown as original words, random words or synonyms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zicl._random import rng
from zicl.demos.labels import Labels
from zicl.exceptions import SynonymError


@dataclass(frozen=True)
class Drawn:
    """A demonstration's random label, and the words it is shown as."""

    label: str
    words: str


class Labeler(Protocol):
    """Gives each demonstration a label; ``words`` maps labels to what is shown."""

    @property
    def words(self) -> Mapping[str, tuple[str, ...]]:
        """What each label is shown as."""
        ...

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[Drawn]:
        """A label for each of ``rows``, nearest first."""
        ...


@dataclass(frozen=True)
class RandomLabels:
    """A label a demonstration, drawn uniformly and independently."""

    words: Mapping[str, tuple[str, ...]]

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[Drawn]:
        """Drawn from the nearest on, so that a larger k keeps the nearer ones' labels."""
        generator, names = rng(seed, key, "labels"), list(self.words)
        drawn = []
        for _ in rows:
            name = names[int(generator.integers(len(names)))]
            shown = self.words[name]
            drawn.append(Drawn(name, shown[int(generator.integers(len(shown)))] if len(shown) > 1 else shown[0]))
        return drawn


@dataclass(frozen=True)
class GoldLabels:
    """The labels that training examples have; ``by_row`` holds them."""

    words: Mapping[str, tuple[str, ...]]
    by_row: Sequence[str]

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[Drawn]:
        """The true label of each row."""
        return [Drawn(self.by_row[row], self.words[self.by_row[row]][0]) for row in rows]


def original(labels: Labels) -> RandomLabels:
    """The label words themselves."""
    return RandomLabels({label.name: (label.words,) for label in labels})


def synonyms(labels: Labels) -> RandomLabels:
    """Synonyms of the labels: the model cannot copy them into its answer."""
    missing = [label.name for label in labels if not label.synonyms]
    if missing:
        raise SynonymError(
            f"no synonym is known for: {', '.join(missing)}",
            hint="name one for each, e.g. " + " ".join(f"--synonyms {name}=…" for name in missing),
        )
    return RandomLabels({label.name: label.synonyms for label in labels})


def random_words(labels: Labels, unigrams: Sequence[str], seed: int) -> RandomLabels:
    """A one-to-one map from labels to random English words, one map a seed."""
    taken = {word.casefold() for label in labels for word in (label.name, label.words, *label.synonyms)}
    usable = sorted(set(unigrams) - taken)
    order = rng(seed, "random words").choice(len(usable), len(labels), replace=False)
    return RandomLabels({label.name: (usable[int(n)],) for label, n in zip(labels, order, strict=True)})
