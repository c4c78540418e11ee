"""Embed texts for experts: in groups that only the call decides, each group once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from zicl._util.cache import BoundedCache
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import stable_hash
from zicl.inputs.pair import Text
from zicl.retrieve.encoder import Encoder, Vectors

# The last digits of a vector depend on the texts that it is encoded with. In large groups batches of one length form,
# with hardly any padding: groups of 256 sentences have 24% of it, of 1,024 8%.
GROUP = 4096
# The vectors of this many texts are kept: 30 MB of 384 numbers each.
_KEPT = 20_000
# Large enough to form batches of texts of similar length, small enough to report progress.
_CHUNK = 1024


class BatchEmbedder:
    """Embed the distinct texts of a call in groups, in the order given, and keep the vectors of recent groups.

    A vector depends on its group alone, to the last digit: on other machines, and after whatever else was embedded. A
    call that is repeated encodes nothing again, nor one for other labels. Deep copies return the embedder itself.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._cache: BoundedCache[int, Vectors] = BoundedCache(_KEPT, max_weight=_KEPT)

    def __deepcopy__(self, memo: dict[int, object]) -> BatchEmbedder:
        return self

    def __call__(self, texts: Sequence[Text]) -> Vectors:
        """Return one vector per text."""
        plain = [str(text) for text in texts]
        distinct = list(dict.fromkeys(plain))
        groups = [distinct[start : start + GROUP] for start in range(0, len(distinct), GROUP)]
        vectors = np.concatenate([self._embed_group(group) for group in groups or [[]]])
        places = {text: place for place, text in enumerate(distinct)}
        return np.asarray(vectors[[places[text] for text in plain]], dtype=np.float32) if plain else vectors

    def _embed_group(self, texts: list[str]) -> Vectors:
        key = stable_hash(*texts)
        vectors = self._cache.get(key)
        if vectors is None:
            vectors = self.encoder.encode(texts)
            self._cache.put(key, vectors, weight=len(texts))
        return vectors


def encode_in_chunks(encoder: Encoder, texts: Sequence[Text], report: ProgressReport = silent) -> Iterator[Vectors]:
    """Yield the vectors of texts, stripped, chunk by chunk; a pair is encoded as one text."""
    for start in range(0, len(texts), _CHUNK):
        report("encoding the texts", start, len(texts))
        yield encoder.encode([str(text.strip()) for text in texts[start : start + _CHUNK]])
    report("encoding the texts", len(texts), len(texts))


def each_text(embed: Callable[[Text], Vectors]) -> Callable[[Sequence[Text]], Vectors]:
    """Return a function that embeds texts one at a time, with a function that caches them."""
    return lambda texts: np.array([embed(text) for text in texts], dtype=np.float32)
