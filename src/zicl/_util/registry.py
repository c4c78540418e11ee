"""Names for implementations: a lazy table of ``name -> "module:attribute"``, open to entry points."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from zicl.exceptions import UnknownNameError


def did_you_mean(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that stands for nothing, with the nearest known names.

    >>> print(did_you_mean("retriever", "nearst", ["nearest", "random"]))
    unknown retriever 'nearst'
      → did you mean 'nearest'? Known: nearest, random
    """
    names = sorted(known)
    plain = {each.casefold(): each for each in names}
    close = difflib.get_close_matches(name.casefold(), plain, n=1, cutoff=0.5)
    hint = f"did you mean {plain[close[0]]!r}? " if close else ""
    return UnknownNameError(f"unknown {kind} {name!r}", hint=f"{hint}Known: {', '.join(names)}")


class Registry:
    """Finds an implementation by name and imports it only then."""

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        self.kind = kind
        self._table = dict(table)

    def names(self) -> list[str]:
        """All known names, those of other installed packages included."""
        return sorted({*self._table, *(entry.name for entry in self._others())})

    def get(self, name: str) -> Any:
        """What ``name`` stands for."""
        if name in self._table:
            module, _, attribute = self._table[name].partition(":")
            return getattr(import_module(module), attribute)
        for entry in self._others():
            if entry.name == name:
                return entry.load()
        raise did_you_mean(self.kind, name, self.names())

    def _others(self) -> list[Any]:
        return list(entry_points(group=f"zicl.{self.kind}s"))
