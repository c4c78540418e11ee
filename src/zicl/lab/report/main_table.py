"""The main table: methods by tasks, in the paper's shape, with the paper's numbers beside ours if asked for."""

from __future__ import annotations

from zicl.lab.report.cells import Block, Cell, Metric, Results, mean_and_deviation
from zicl.lab.report.notes import main_notes
from zicl.lab.report.paper_rows import paper_notes, paper_sections
from zicl.lab.report.table import (
    UNFINISHED,
    Column,
    Entry,
    Row,
    Table,
    ordered,
    row_title,
    sections,
    task_columns,
    with_best,
)

_TITLES = {"accuracy": "Accuracy", "macro-f1": "Macro-F1"}


def main_table(results: Results, metric: Metric = "accuracy", *, paper: bool = False) -> Table:
    """Mean and standard deviation over seeds, the best zero-shot method of each section's columns marked."""
    columns = task_columns(results.tasks, averages=True)

    def rows(block: Block) -> tuple[Row, ...]:
        methods, made = results.methods(block), []
        for method in ordered(methods):
            cells = results.row(block, method)
            entries = tuple(_entry(cells, column, metric) for column in columns)
            made.append(Row(method, row_title(methods[method]), methods[method].labelled, entries))
        return with_best(made)

    shown = sections(results, rows)
    notes = main_notes(results, metric)
    if paper:
        shown += tuple(paper_sections(columns))
        notes += paper_notes(columns, results.majorities)
    title = f"{_TITLES[metric]} in per cent, mean and standard deviation over seeds"
    return Table(title, columns, shown, tuple(notes))


def _entry(cells: dict[str, Cell], column: Column, metric: Metric) -> Entry:
    members = [cells[task] for task in column.tasks if task in cells]
    # An average over some of the tasks would not compare with the other rows.
    if len(members) < len(column.tasks):
        return Entry()
    mean, deviation = mean_and_deviation(members, metric)
    late = mean is not None and any(cell.missing for cell in members)
    return Entry(mean, deviation, marks=UNFINISHED if late else "")
