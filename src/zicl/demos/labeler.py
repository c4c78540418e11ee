"""Random labels for the demonstrations, shown as original words, random words or synonyms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zicl._random import rng
from zicl.demos.labels import Labels
from zicl.exceptions import SynonymError


@dataclass(frozen=True)
class Drawn:
    """A demonstration's random label, and the words it is shown as."""

    label: str
    words: str


@dataclass(frozen=True)
class Labeler:
    """Draws a label a demonstration, uniformly and independently; ``words`` maps labels to what is shown."""

    words: Mapping[str, tuple[str, ...]]

    def label(self, count: int, seed: int, key: str) -> list[Drawn]:
        """Labels for ``count`` demonstrations, nearest first, so that a larger k keeps the nearer ones' labels."""
        generator, names = rng(seed, key, "labels"), list(self.words)
        drawn = []
        for _ in range(count):
            name = names[int(generator.integers(len(names)))]
            shown = self.words[name]
            drawn.append(Drawn(name, shown[int(generator.integers(len(shown)))] if len(shown) > 1 else shown[0]))
        return drawn


def original(labels: Labels) -> Labeler:
    """The label words themselves."""
    return Labeler({label.name: (label.words,) for label in labels})


def synonyms(labels: Labels) -> Labeler:
    """Synonyms of the labels: the model cannot copy them into its answer."""
    missing = [label.name for label in labels if not label.synonyms]
    if missing:
        raise SynonymError(
            f"no synonym is known for: {', '.join(missing)}",
            hint="name one for each, e.g. " + " ".join(f"--synonyms {name}=…" for name in missing),
        )
    return Labeler({label.name: label.synonyms for label in labels})


def random_words(labels: Labels, unigrams: Sequence[str], seed: int) -> Labeler:
    """A one-to-one map from labels to random English words, one map a seed."""
    taken = {word.casefold() for label in labels for word in (label.name, label.words, *label.synonyms)}
    usable = sorted(set(unigrams) - taken)
    order = rng(seed, "random words").choice(len(usable), len(labels), replace=False)
    return Labeler({label.name: (usable[int(n)],) for label, n in zip(labels, order, strict=True)})
