"""Recognise duplicate sentences and documents by hash; white space and case make no difference."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from zicl.corpus.splitter import normalize_space

# Larger groups are not recognised as one text: excluding that text would exclude a large part of the corpus.
_LARGEST_GROUP = 64


def same_text_hash(text: str) -> int:
    """Return a 64-bit hash of a text with normalised white space (see ``normalize_space``), ignoring case.

    >>> same_text_hash("So good") == same_text_hash("so good")
    True
    """
    return _to_int(_new_digest(text))


def document_hash(text: str) -> int:
    r"""Return the hash of any text, ignoring white space and case.

    >>> document_hash("so good") == document_hash(" So\n\ngood")
    True
    """
    return same_text_hash(normalize_space(text))


def _casefolded(text: str) -> bytes:
    return text.casefold().encode("utf-8", "surrogatepass")


def _new_digest(text: str) -> hashlib.blake2b:
    return hashlib.blake2b(_casefolded(text), digest_size=8)


def _to_int(digest: hashlib.blake2b) -> int:
    return int.from_bytes(digest.digest(), "little")


class SeenSentences:
    """The distinct sentences so far, as a sorted array of hashes: eight bytes per sentence in memory.

    >>> seen = SeenSentences()
    >>> seen.first(np.array([5, 7, 5], dtype=np.uint64)).tolist()
    [True, True, False]
    """

    def __init__(self) -> None:
        self._hashes: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._hashes)

    def first(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return for each hash whether this is its first occurrence, and add all of them."""
        distinct, where = np.unique(hashes, return_index=True)
        places = np.searchsorted(self._hashes, distinct)
        inside = places < len(self._hashes)
        known = np.zeros(len(distinct), dtype=bool)
        known[inside] = self._hashes[places[inside]] == distinct[inside]
        result = np.zeros(len(hashes), dtype=bool)
        result[where[~known]] = True
        self._hashes = np.insert(self._hashes, places[~known], distinct[~known])
        return result


class DocumentHashes:
    """Hash the documents of a source, and the groups they form, while their blocks stream by.

    Only .txt files have documents that form groups (see ``TextBlock``).
    """

    def __init__(self, *, grouped: bool) -> None:
        self._grouped = grouped
        self._record: int | None = None
        self._group: int | None = None
        self._members: list[int] = []
        self._record_digest = self._group_digest = hashlib.blake2b(digest_size=8)

    def feed(self, record: int, group: int, text: str) -> list[tuple[int, int]]:
        """Add a block, and return the (document, hash) pairs of what ended before it."""
        finished = []
        if record != self._record:
            finished += self._finished_record()
            self._record, self._record_digest = record, _new_digest(text)
        else:
            self._record_digest.update(b" " + _casefolded(text))
        if not self._grouped:
            return finished
        if group != self._group:
            finished += self._finished_group()
            self._group, self._members, self._group_digest = group, [], _new_digest(text)
        else:
            self._group_digest.update(b" " + _casefolded(text))
        if record not in self._members[-1:]:
            self._members.append(record)
        return finished

    def last(self) -> list[tuple[int, int]]:
        """Return the (document, hash) pairs of the last record and group."""
        return self._finished_record() + self._finished_group()

    def _finished_record(self) -> list[tuple[int, int]]:
        return [] if self._record is None else [(self._record, _to_int(self._record_digest))]

    def _finished_group(self) -> list[tuple[int, int]]:
        if not 1 < len(self._members) <= _LARGEST_GROUP:
            return []
        digest = _to_int(self._group_digest)
        return [(member, digest) for member in self._members]
