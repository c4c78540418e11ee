"""Inputs without content, scored under the same demonstrations: what a label gets for them it gets for any text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from zicl._util.random import rng
from zicl.config import Calibration
from zicl.exceptions import ConfigError

# The content-free inputs of contextual calibration (Zhao et al., 2021); an empty one is the bare input line.
CONTENT_FREE = ("N/A", "[MASK]", "")


class Probes(Protocol):
    """Gives the inputs that are scored beside a text."""

    def inputs(self, sentences: Sequence[str], seed: int, key: str) -> list[str]:
        """The inputs, for a prompt with these sentences as demonstrations."""
        ...


@dataclass(frozen=True)
class Fixed:
    """The same inputs under every prompt."""

    texts: tuple[str, ...]

    def inputs(self, sentences: Sequence[str], seed: int, key: str) -> list[str]:
        """What was given."""
        return list(self.texts)


@dataclass(frozen=True)
class DomainWords:
    """Words of the demonstrations at random, as many as their sentences have in the middle (Fei et al., 2023)."""

    draws: int

    def inputs(self, sentences: Sequence[str], seed: int, key: str) -> list[str]:
        """``draws`` sequences."""
        split = [sentence.split() for sentence in sentences]
        words = [word for sentence in split for word in sentence]
        length = sorted(len(sentence) for sentence in split)[len(split) // 2]
        generator = rng(seed, key, "domain words")
        return [" ".join(words[int(n)] for n in generator.integers(len(words), size=length)) for _ in range(self.draws)]


def make_probes(settings: Calibration, *, k: int, bare_line: bool) -> Probes | None:
    """The probes of a calibration. ``bare_line`` says whether the template has words beside the input."""
    if settings.method == "contextual":
        return Fixed(CONTENT_FREE if bare_line else CONTENT_FREE[:2])
    if settings.method == "pmi":
        if not settings.premise and not bare_line:
            raise ConfigError(
                "the template has no words of its own to score in place of an input",
                hint="name a premise (calibration.premise), e.g. 'a film review', or use a template",
            )
        return Fixed((settings.premise,))
    if settings.method == "domain":
        if k == 0:
            raise ConfigError(
                "domain calibration draws words from the demonstrations, and this method has none",
                hint="use 'contextual' or 'batch'",
            )
        return DomainWords(settings.draws)
    return None
