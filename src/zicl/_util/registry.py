"""Find implementations by name: a lazy table of ``name -> "module:attribute"``, extended by entry points."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from zicl.exceptions import UnknownNameError

# Of a name a stranger gave; the time of a comparison grows with the square.
_COMPARED = 100


def did_you_mean(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name, with the closest known one as a suggestion.

    >>> print(did_you_mean("retriever", "nearst", ["nearest", "random"]))
    unknown retriever 'nearst'
      → did you mean 'nearest'? Known: nearest, random
    """
    names = sorted(known)
    return UnknownNameError(
        f"unknown {kind} {name!r}", hint=f"{nearest_name(name, names, 0.5)}Known: {', '.join(names)}"
    )


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the beginning of a hint that suggests the closest known name; empty if none is close.

    >>> nearest_name("revew", ["id", "Review"])
    "did you mean 'Review'? "
    """
    by_casefold = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold()[:_COMPARED], by_casefold, n=1, cutoff=cutoff)
    return f"did you mean {by_casefold[close[0]]!r}? " if close else ""


class Registry:
    """Implementations by name, imported on first use.

    Installed packages add to it with entry points of the group ``zicl.<kind>s``.
    """

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        self.kind = kind
        self._table = dict(table)

    def names(self) -> list[str]:
        """Return all known names, those of installed plug-ins included."""
        return sorted({*self._table, *(entry.name for entry in self._plugins())})

    def get(self, name: str) -> Any:
        """Import and return the implementation with this name."""
        if name in self._table:
            module, _, attribute = self._table[name].partition(":")
            return getattr(import_module(module), attribute)
        for entry in self._plugins():
            if entry.name == name:
                return entry.load()
        raise did_you_mean(self.kind, name, self.names())

    def _plugins(self) -> list[Any]:
        return list(entry_points(group=f"zicl.{self.kind}s"))
