"""Pseudo-options: where every text has options of its own, a demonstration is answered with a sentence near it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from zicl._util.random import rng
from zicl.exceptions import RetrievalError
from zicl.prompt.labelers import Drawn
from zicl.retrieve.index import Searchable

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

    def label(self, rows: Sequence[int], seed: int, key: str) -> list[Drawn]:
        """A neighbouring sentence for each row."""
        generator, drawn = rng(seed, key, "options"), list[Drawn]()
        for row in rows:
            near = self.index.around(row, _REACH)
            if not near:
                raise RetrievalError(
                    f"sentence {row} stands alone in its paragraph: there is no sentence near it to answer with",
                    hint="use the retrieval 'physical', which takes no such sentence",
                )
            chosen = near[int(generator.integers(len(near)))]
            drawn.append(Drawn(f"sentence {chosen}", self.shorten(self.index.sentence(chosen).text)))
        return drawn
