"""Many texts through the encoder, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zicl.inputs.pair import plain
from zicl.retrieve.encoder import Encoder, Vectors

# Long enough that batches of texts of about one length can be formed, short enough to say how far it is.
_PIECE = 1024


def embedded(encoder: Encoder, texts: Sequence[str]) -> Iterator[Vectors]:
    """The vectors of the texts, in their order, in pieces; a pair is one text. Space around a text does not count."""
    for start in range(0, len(texts), _PIECE):
        yield encoder.encode([plain(text.strip()) for text in texts[start : start + _PIECE]])
