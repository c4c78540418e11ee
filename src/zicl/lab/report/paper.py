"""The paper's two result tables, cell by cell as printed, with the doubtful ones flagged."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

# The columns that are averages of the columns before them.
AVERAGES = ("covered", "not-covered")


@dataclass(frozen=True)
class PaperCell:
    """A printed accuracy and its standard deviation in per cent; ``doubt`` says why it may be a misprint."""

    mean: float
    deviation: float | None
    doubt: str = ""


@dataclass(frozen=True)
class PaperRow:
    """One row of a table: a method with a model and an inference ("none" for the majority)."""

    model: str
    inference: str
    method: str
    cells: dict[str, PaperCell]

    @property
    def averaged(self) -> dict[str, set[str]]:
        """The printed averages, each with the tasks before it that it is over."""
        found: dict[str, set[str]] = {}
        tasks: set[str] = set()
        for column in self.cells:
            if column in AVERAGES:
                found[column], tasks = tasks, set()
            else:
                tasks.add(column)
        return found


@cache
def paper_results() -> tuple[PaperRow, ...]:
    """All rows of both tables, in the order printed.

    >>> [row.cells["CR"].mean for row in paper_results() if row.method == "z-icl" and row.model == "GPT-J"]
    [80.1, 78.8]
    """
    data = tomllib.loads(files("zicl").joinpath("data/paper_results.toml").read_text(encoding="utf-8"))
    doubts = {(f["model"], f["inference"], f["method"], f["column"]): f["reason"] for f in data["flagged"]}
    rows = []
    for table in data["table"]:
        for model, inferences in table["models"].items():
            for inference, methods in inferences.items():
                for method, cells in methods.items():
                    where = (model, inference, method)
                    rows.append(PaperRow(*where, _cells(table["columns"], cells, where, doubts)))
    return tuple(rows)


def _cells(
    columns: list[str], cells: list[list[float]], where: tuple[str, str, str], doubts: dict[Any, str]
) -> dict[str, PaperCell]:
    return {
        column: PaperCell(cell[0], cell[1] if len(cell) > 1 else None, doubts.get((*where, column), ""))
        for column, cell in zip(columns, cells, strict=True)
    }
