"""Recognising a text that stands in the corpus, however it is spaced or capitalised."""

from __future__ import annotations

import hashlib

from zicl.corpus.read import Block

# The whole of a longer .txt file is not recognised: leaving it out would leave nothing.
_LARGEST_GROUP = 64


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
    """Hashes a source's documents, and the groups they form, while its blocks pass by, holding no text."""

    def __init__(self) -> None:
        self._record: int | None = None
        self._group: int | None = None
        self._members: list[int] = []
        self._record_digest = self._group_digest = hashlib.blake2b(digest_size=8)

    def feed(self, block: Block) -> list[tuple[int, int]]:
        """Take a block in; the (document, hash) pairs that are finished because something new begins with it."""
        finished = []
        if block.record != self._record:
            finished += self._end_of_record()
            if block.group != self._group:
                finished += self._end_of_group()
                self._group, self._members = block.group, []
                self._group_digest = hashlib.blake2b(digest_size=8)
            self._record, self._record_digest = block.record, hashlib.blake2b(digest_size=8)
            self._members.append(block.record)
        bare = _bare(block.text)
        self._record_digest.update(bare)
        self._group_digest.update(bare)
        return finished

    def last(self) -> list[tuple[int, int]]:
        """The (document, hash) pairs of what is being read."""
        return self._end_of_record() + self._end_of_group()

    def _end_of_record(self) -> list[tuple[int, int]]:
        return [] if self._record is None else [(self._record, _finish(self._record_digest))]

    def _end_of_group(self) -> list[tuple[int, int]]:
        if not 1 < len(self._members) <= _LARGEST_GROUP:
            return []
        digest = _finish(self._group_digest)
        return [(member, digest) for member in self._members]
