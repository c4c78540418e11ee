"""When two texts are the same: white space and capitals aside.

This one notion decides which sentences are duplicates, and which document an input comes from.
"""

from __future__ import annotations

import hashlib

from zicl.corpus.paragraphs import tidy

# The whole of a longer .txt file is not recognised: leaving it out would leave nothing.
_LARGEST_GROUP = 64


def same_text_hash(tidied: str) -> int:
    """A 64-bit hash of a tidied text (see ``tidy``), capitals aside.

    >>> same_text_hash("So good") == same_text_hash("so good")
    True
    """
    return int.from_bytes(hashlib.blake2b(_bare(tidied), digest_size=8).digest(), "little")


def document_hash(text: str) -> int:
    r"""The same hash for any text.

    >>> document_hash("so good") == document_hash(" So\n\ngood")
    True
    """
    return same_text_hash(tidy(text))


def _bare(tidied: str) -> bytes:
    return tidied.casefold().encode("utf-8", "surrogatepass")


class DocumentHashes:
    """Hashes a source's documents, and the groups they form, while their text passes by, holding none of it.

    Only .txt files have documents that form groups (see ``Block``).
    """

    def __init__(self, *, grouped: bool) -> None:
        self._grouped = grouped
        self._record: int | None = None
        self._group: int | None = None
        self._members: list[int] = []
        self._record_digest = self._group_digest = hashlib.blake2b(digest_size=8)

    def feed(self, record: int, group: int, tidied: str) -> list[tuple[int, int]]:
        """Take a block in; the (document, hash) pairs that are finished because something new begins with it."""
        finished = []
        if record != self._record:
            finished += self._end_of_record()
            self._record, self._record_digest = record, hashlib.blake2b(_bare(tidied), digest_size=8)
        else:
            self._record_digest.update(b" " + _bare(tidied))
        if self._grouped:
            finished += self._feed_group(record, group, tidied)
        return finished

    def _feed_group(self, record: int, group: int, tidied: str) -> list[tuple[int, int]]:
        finished = []
        if group != self._group:
            finished = self._end_of_group()
            self._group, self._members = group, []
            self._group_digest = hashlib.blake2b(_bare(tidied), digest_size=8)
        else:
            self._group_digest.update(b" " + _bare(tidied))
        if record not in self._members[-1:]:
            self._members.append(record)
        return finished

    def last(self) -> list[tuple[int, int]]:
        """The (document, hash) pairs of what is being read."""
        return self._end_of_record() + self._end_of_group()

    def _end_of_record(self) -> list[tuple[int, int]]:
        return [] if self._record is None else [(self._record, _number(self._record_digest))]

    def _end_of_group(self) -> list[tuple[int, int]]:
        if not 1 < len(self._members) <= _LARGEST_GROUP:
            return []
        digest = _number(self._group_digest)
        return [(member, digest) for member in self._members]


def _number(digest: hashlib.blake2b) -> int:
    return int.from_bytes(digest.digest(), "little")
