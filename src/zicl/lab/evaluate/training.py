"""A task's labelled training examples, searchable like a corpus."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zicl._util.cache import BoundedCache
from zicl.corpus.dedup import document_hash
from zicl.corpus.store import Sentence
from zicl.exceptions import ConfigError
from zicl.inputs.pair import Text
from zicl.lab.evaluate.examples import Example
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import CACHED_QUERIES, Hit, NoNeighbours

T = TypeVar("T")


class TrainingIndex(NoNeighbours):
    """An index of training examples. Each is a document of one row, so none has a neighbour."""

    def __init__(
        self,
        task: str,
        examples: Sequence[Example],
        load_encoder: Callable[[], Encoder],
        embed: Callable[[Text], NDArray[np.float32]],
    ) -> None:
        self.task, self.examples, self._load_encoder, self.embed = task, list(examples), load_encoder, embed
        self._computed: BoundedCache[Hashable, Any] = BoundedCache(CACHED_QUERIES)
        self._hashes = [document_hash(str(example.text)) for example in self.examples]

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder, loaded on first use: random demonstrations need none."""
        return self._load_encoder()

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """One unit vector per example, computed on first use."""
        return self.encoder.encode([str(example.text) for example in self.examples])

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached value of ``key``, computing it on first use."""
        value: T = self._computed.get_or_compute(key, compute)
        return value

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Yield examples by decreasing similarity; ties in their order."""
        similarities = self.vectors @ self.embed(text)
        for row in np.argsort(-similarities, kind="stable").tolist():
            yield Hit(row, float(similarities[row]))

    def sentence(self, row: int) -> Sentence:
        """Return an example as a sentence."""
        return Sentence(row, self.examples[row].text.strip(), row, 0, self.task, self.examples[row].id)

    def documents_like(self, text: str) -> set[int]:
        """Return the examples with this text."""
        wanted = document_hash(text)
        return {row for row, value in enumerate(self._hashes) if value == wanted}

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """Return the rows of all examples."""
        return np.arange(len(self.examples))


def check_enough(task: str, examples: Sequence[Example], k: int) -> None:
    """Check that a task has k training examples with different texts: no text is shown twice."""
    distinct = len({" ".join(str(example.text).split()).casefold() for example in examples})
    if distinct < k:
        repeated = f", {distinct} of them with different texts" if distinct < len(examples) else ""
        raise ConfigError(
            f"the task {task} has {len(examples)} training examples{repeated}, and k = {k} of them are to be shown",
            hint=f"name a file with more of them, --train {task}=FILE, or use a smaller --k",
        )
