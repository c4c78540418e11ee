"""Which predictions a page shows where it cannot show all: as many right as wrong ones, the same texts for all."""

from __future__ import annotations

from collections.abc import Mapping

from zicl._util.random import stable_hash

# So many a cell, and in all, unless somebody asks for another number.
PER_CELL, IN_ALL = 200, 10_000


def limit(cells: int, asked: int | None) -> int:
    """How many predictions of each cell are shown at most.

    >>> limit(3, None), limit(500, None), limit(500, 7)
    (200, 20, 7)
    """
    return asked if asked is not None else max(1, min(PER_CELL, IN_ALL // max(cells, 1)))


def choose(right: Mapping[str, bool], most: int) -> list[str]:
    """At most so many examples, half of them right and half wrong as far as there are, in a random order.

    The order depends on the names alone, so that two methods mostly show the same texts, and a larger number
    keeps all of a smaller one.

    >>> sorted(choose({"a": True, "b": True, "c": True, "d": False}, 2), key=lambda name: name == "d")[1]
    'd'
    """
    ordered = sorted(right, key=lambda name: (stable_hash("shown", name), name))
    sides = [[name for name in ordered if right[name] is side] for side in (True, False)]
    # The r-th of either side stands at r: one right, one wrong, and what is left of the longer side at the end.
    places = [(rank, side, name) for side, names in enumerate(sides) for rank, name in enumerate(names)]
    return [name for _, _, name in sorted(places)[:most]]
