"""Which sentences are new: eight bytes a distinct sentence, and nothing else, are kept in memory."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from zicl.corpus.splitter import normalize_space


class SeenSentences:
    """The distinct sentences so far, as a sorted array of hashes.

    >>> seen = SeenSentences()
    >>> seen.first(np.array([5, 7, 5], dtype=np.uint64)).tolist()
    [True, True, False]
    """

    def __init__(self) -> None:
        self._hashes: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._hashes)

    def first(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """For each hash, whether it stands here for the first time; all are then known."""
        distinct, where = np.unique(hashes, return_index=True)
        places = np.searchsorted(self._hashes, distinct)
        inside = places < len(self._hashes)
        known = np.zeros(len(distinct), dtype=bool)
        known[inside] = self._hashes[places[inside]] == distinct[inside]
        result = np.zeros(len(hashes), dtype=bool)
        result[where[~known]] = True
        self._hashes = np.insert(self._hashes, places[~known], distinct[~known])
        return result


# -- When two texts are the same: white space and capitals aside.


# The whole of a longer .txt file is not recognised: leaving it out would leave nothing.
_LARGEST_GROUP = 64


def same_text_hash(tidied: str) -> int:
    """A 64-bit hash of a tidied text (see ``normalize_space``), capitals aside.

    >>> same_text_hash("So good") == same_text_hash("so good")
    True
    """
    return int.from_bytes(hashlib.blake2b(_normalized(tidied), digest_size=8).digest(), "little")


def document_hash(text: str) -> int:
    r"""The same hash for any text.

    >>> document_hash("so good") == document_hash(" So\n\ngood")
    True
    """
    return same_text_hash(normalize_space(text))


def _normalized(tidied: str) -> bytes:
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
            self._record, self._record_digest = record, hashlib.blake2b(_normalized(tidied), digest_size=8)
        else:
            self._record_digest.update(b" " + _normalized(tidied))
        if self._grouped:
            finished += self._feed_group(record, group, tidied)
        return finished

    def _feed_group(self, record: int, group: int, tidied: str) -> list[tuple[int, int]]:
        finished = []
        if group != self._group:
            finished = self._end_of_group()
            self._group, self._members = group, []
            self._group_digest = hashlib.blake2b(_normalized(tidied), digest_size=8)
        else:
            self._group_digest.update(b" " + _normalized(tidied))
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
