"""Recognising a text that stands in the corpus, however it is spaced or capitalised."""

from __future__ import annotations

import hashlib

from zicl.corpus.read import Block


def document_hash(text: str) -> int:
    r"""A 64-bit hash of a text without its white space and capitals.

    >>> document_hash("so good") == document_hash(" So\n\ngood")
    True
    """
    return _finish(hashlib.blake2b(_bare(text), digest_size=8))


def _bare(text: str) -> bytes:
    return "".join(text.split()).casefold().encode("utf-8", "surrogatepass")


def _finish(digest: hashlib.blake2b) -> int:
    return int.from_bytes(digest.digest(), "little")


class DocumentHashes:
    """Hashes a source's documents while its blocks pass by, holding no text."""

    def __init__(self) -> None:
        self._record: int | None = None
        self._digest = hashlib.blake2b(digest_size=8)

    def feed(self, block: Block) -> tuple[int, int] | None:
        """Take a block in; the (record, hash) of the document before it, if the block starts a new one."""
        finished = None
        if block.record != self._record:
            finished = self.last()
            self._record, self._digest = block.record, hashlib.blake2b(digest_size=8)
        self._digest.update(_bare(block.text))
        return finished

    def last(self) -> tuple[int, int] | None:
        """The (record, hash) of the document that is being read."""
        return None if self._record is None else (self._record, _finish(self._digest))
