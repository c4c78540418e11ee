"""Check the header of a GGUF file before it is read: the reader follows any length that a file claims, for hours."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
# The shortest string, array and description of a tensor.
_STRING_BYTES, _ARRAY_BYTES, _TENSOR_BYTES = 8, 12, 24
_DEEPEST, _MOST_DIMENSIONS = 2, 8


def check_header(path: Path) -> None:
    """Raise a ValueError if anything that the header announces does not fit into the file."""
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            _Walk(data).header()
        except struct.error as error:
            raise ValueError("it ends within its header") from error


class _Walk:
    """Steps over the parts of a header; every step stays inside of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._place, self._order = data, 0, "<"

    def header(self) -> None:
        """Step over the fields and the descriptions of tensors."""
        if self._data[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._place = 4
        if not self._number("I") & 0xFFFF:
            self._order = ">"
        tensors, fields = self._number("Q"), self._number("Q")
        self._fits(fields, _ARRAY_BYTES)
        for _ in range(fields):
            self._string()
            self._value(self._number("I"), 0)
        self._fits(tensors, _TENSOR_BYTES)
        for _ in range(tensors):
            self._string()
            dimensions = self._number("I")
            if dimensions > _MOST_DIMENSIONS:
                raise ValueError(f"a tensor has {dimensions} dimensions")
            self._skip(dimensions * 8 + 4 + 8)

    def _number(self, kind: str) -> int:
        (value,) = struct.unpack_from(self._order + kind, self._data, self._place)
        self._place += struct.calcsize(kind)
        return int(value)

    def _fits(self, count: int, each: int) -> None:
        if count * each > len(self._data) - self._place:
            raise ValueError(f"it announces {count:,} entries, and ends before")

    def _skip(self, size: int) -> None:
        self._fits(size, 1)
        self._place += size

    def _string(self) -> None:
        self._skip(self._number("Q"))

    def _value(self, kind: int, depth: int) -> None:
        if kind in _SIZES:
            self._skip(_SIZES[kind])
        elif kind == _STRING:
            self._string()
        elif kind == _ARRAY and depth < _DEEPEST:
            inner, count = self._number("I"), self._number("Q")
            if inner in _SIZES:
                self._fits(count, _SIZES[inner])
                self._skip(count * _SIZES[inner])
                return
            self._fits(count, _STRING_BYTES if inner == _STRING else _ARRAY_BYTES)
            for _ in range(count):
                self._value(inner, depth + 1)
        else:
            raise ValueError(f"a field has the type {kind}")
