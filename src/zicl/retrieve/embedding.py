"""Embed texts for experts: in batches, each text once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from zicl._util.cache import BoundedCache
from zicl.inputs.pair import Text
from zicl.retrieve.encoder import Encoder, Vectors

# The vectors of this many texts are kept: 30 MB of 384 numbers each.
_KEPT = 20_000


class BatchEmbedder:
    """Embed texts in batches and keep recent vectors: what was encoded to fit is not encoded again to predict.

    Deep copies return the embedder itself.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._cache: BoundedCache[str, Vectors] = BoundedCache(_KEPT)

    def __deepcopy__(self, memo: dict[int, object]) -> BatchEmbedder:
        return self

    def __call__(self, texts: Sequence[Text]) -> Vectors:
        """Return one vector per text."""
        plain = [str(text) for text in texts]
        known = {text: vector for text in set(plain) if (vector := self._cache.get(text)) is not None}
        # In the order given: the same texts form the same batches.
        if missing := [text for text in dict.fromkeys(plain) if text not in known]:
            for text, vector in zip(missing, self.encoder.encode(missing), strict=True):
                known[text] = vector
                self._cache.put(text, vector)
        return np.stack([known[text] for text in plain]) if plain else self.encoder.encode([])


def each_text(embed: Callable[[Text], Vectors]) -> Callable[[Sequence[Text]], Vectors]:
    """Return a function that embeds texts one at a time, with a function that caches them."""
    return lambda texts: np.array([embed(text) for text in texts], dtype=np.float32)
