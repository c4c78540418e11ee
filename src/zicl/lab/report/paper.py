"""The paper's two result tables, as printed and with doubtful cells flagged, as sections of our main table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.layout import DOUBTFUL, TableColumn, TableEntry, TableRow, TableSection, mark_best

# The columns that are averages of the columns before them.
AVERAGES = ("covered", "not-covered")
# The label shares of two samples of the same examples may differ by this many percentage points, or by one example.
_SHARE_TOLERANCE = 2.0
_TITLES = {
    "majority": "Majority", "no-demos": "No-demos", "random-inputs": "Random inputs", "naive": "Naive Z-ICL",
    "z-icl": "Z-ICL", "icl-gold": "ICL-gold (oracle)", "icl-random": "ICL-random (oracle)",
}  # fmt: skip


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
        """The printed averages, each with the tasks it is over: those before it."""
        averages: dict[str, set[str]] = {}
        tasks: set[str] = set()
        for column in self.cells:
            if column in AVERAGES:
                averages[column], tasks = tasks, set()
            else:
                tasks.add(column)
        return averages


@cache
def paper_results() -> tuple[PaperRow, ...]:
    """Return all rows of both tables, in the order printed.

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
                    row = (model, inference, method)
                    printed = {
                        column: PaperCell(cell[0], cell[1] if len(cell) > 1 else None, doubts.get((*row, column), ""))
                        for column, cell in zip(table["columns"], cells, strict=True)
                    }
                    rows.append(PaperRow(*row, printed))
    return tuple(rows)


def paper_sections(columns: Sequence[TableColumn]) -> list[TableSection]:
    """Return one section per model and inference of the paper that has a number for one of the columns."""
    grouped: dict[tuple[str, str], list[TableRow]] = {}
    for row in paper_results():
        cells = [_cell(row, column) for column in columns]
        if any(cells):
            new = TableRow(row.method, _TITLES[row.method], row.method.startswith("icl-"), tuple(map(_entry, cells)))
            grouped.setdefault((row.model, row.inference), []).append(new)
    return [
        TableSection(
            f"{'' if inference == NO_INFERENCE else inference.capitalize() + ' '}{model} (paper)", mark_best(rows)
        )
        for (model, inference), rows in grouped.items()
    ]


def paper_notes(columns: Sequence[TableColumn], guessing: Mapping[str, tuple[float, int]]) -> list[str]:
    """Explain the paper's rows: doubtful cells, other examples than ours, averages, and tasks it does not have.

    ``guessing`` is the accuracy, for each task, of guessing labels as often as they occur, and the number of examples.
    """
    cells = [(row, column, _cell(row, column)) for row in paper_results() for column in columns]
    notes = [
        f"{DOUBTFUL} As printed in the paper, but doubtful: {row.model}, {row.inference}, {row.method}, "
        f"{column.name}: {cell.doubt}."
        for row, column, cell in cells
        if cell is not None and cell.doubt
    ]
    notes += _other_examples(guessing)
    if any(column.average for column in columns):
        notes.append(
            "The deviation of an average is that of the seeds' averages in our rows, and the mean of the tasks' "
            "deviations in the paper's."
        )
    if any(column.average and cell is not None and cell.deviation is None for _, column, cell in cells):
        notes.append(
            "An average of the paper's rows that has no deviation is over other tasks than the paper's averages: "
            "it is computed from the printed cells."
        )
    missing = [column.name for column in columns if not any(cell for _, other, cell in cells if other is column)]
    if missing:
        notes.append(f"Not in the paper: {', '.join(missing)}.")
    return notes


def _other_examples(guessing: Mapping[str, tuple[float, int]]) -> list[str]:
    """Name tasks whose labels have other shares in the paper: its examples were not ours."""
    paper = {task: cell.mean for row in paper_results() if row.method == "majority" for task, cell in row.cells.items()}
    differ = [
        f"{accuracy:.1f} and {paper[task]:.1f} % of {task}"
        for task, (accuracy, examples) in guessing.items()
        if task in paper and abs(accuracy - paper[task]) > max(_SHARE_TOLERANCE, 100 / examples)
    ]
    notes = [
        "The paper's row Majority is not the share of the most frequent label, but the accuracy of guessing each label "
        "as often as it occurs: the sum of the squared shares."
    ]
    if differ:
        notes.append(
            f"Other examples than the paper's: such guessing gets, here and in the paper, {', '.join(differ)}. "
            "Accuracies on these tasks are hardly comparable; macro-F1 depends less on such shares."
        )
    return notes if guessing else []


def _cell(row: PaperRow, column: TableColumn) -> PaperCell | None:
    """Return the paper's cell; an average as printed if it is over the same tasks, else computed."""
    if not column.average:
        return row.cells.get(column.name)
    for name, tasks in row.averaged.items():
        if tasks == set(column.tasks):
            return row.cells[name]
    means = [row.cells[task].mean for task in column.tasks if task in row.cells]
    return PaperCell(sum(means) / len(means), None) if len(means) == len(column.tasks) else None


def _entry(cell: PaperCell | None) -> TableEntry:
    if cell is None:
        return TableEntry()
    return TableEntry(cell.mean, cell.deviation, marks=DOUBTFUL if cell.doubt else "")
