"""The tables beside the main one: differences to the baselines, predicted labels, copy rates, what is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from zicl.lab.report.cells import ReportCell, ReportSection, ResultSet
from zicl.lab.report.recalibrate import LARGE, PATTERNS, SHARE_DRAWS, Pattern, ResampledCells
from zicl.lab.report.reliability import BINS, probability_claims
from zicl.lab.report.statistics import DRAWS, Difference
from zicl.lab.report.table import (
    Table,
    TableColumn,
    TableEntry,
    TableRow,
    TableSection,
    ordered,
    row_title,
    sections,
    task_columns,
)

_SIGNIFICANT = 0.05
_AVERAGE = "All tasks"
_HOW = (
    f"95 % intervals from {DRAWS:,} paired draws of examples and seeds; one or two seeds say little about the spread "
    "over seeds. Bold: p < 0.05 after Holm's correction over all differences of this report; p is the share of draws "
    "beyond zero, or the normal tail where there are hardly any, and never below what the examples that differ could "
    "say if all of them were for one side."
)
_CLAIMS = (
    "Lower is better. Log-likelihood in nats; the Brier score is summed over labels, from 0 to 2; the expected "
    f"calibration error has {BINS} adaptive bins of equally many texts, and lies above zero by chance where texts are "
    "few. Means over seeds.",
    "Probabilities are a softmax of the scores. Cosines are not meant as such and are left out.",
)


def side_tables(results: ResultSet, differences: Sequence[Difference]) -> list[Table]:
    """All of them that have something to show."""
    baselines = dict.fromkeys(each.baseline for each in differences)
    tables = [_differences(results, name, [d for d in differences if d.baseline == name]) for name in baselines]
    return [table for table in (*tables, _shares(results), _copies(results), _claims(results)) if table.sections]


def _differences(results: ResultSet, baseline: str, own: Sequence[Difference]) -> Table:
    columns = task_columns(results.tasks, averages=False)
    if len(columns) > 1:
        columns += (TableColumn(_AVERAGE, "", tuple(results.tasks), average=True),)
    found = {(each.block, each.method, each.task): each for each in own}

    def rows(block: ReportSection) -> tuple[TableRow, ...]:
        kinds, made = {each.method: each.kind for each in own if each.block == block}, []
        for method in ordered(kinds):
            entries = [_entry(found.get((block, method, None if c.average else c.name)), c) for c in columns]
            made.append(TableRow(method, row_title(kinds[method]), kinds[method].labelled, tuple(entries)))
        return tuple(made)

    title = f"Difference in accuracy to {baseline}, in percentage points"
    return Table(title, columns, sections(results, rows), (_HOW,), signed=True)


def _entry(found: Difference | None, column: TableColumn) -> TableEntry:
    # An average over some of the tasks would not compare with the other rows.
    if found is None or found.tasks < len(column.tasks):
        return TableEntry()
    return TableEntry(found.estimate, interval=(found.low, found.high), best=found.p_holm < _SIGNIFICANT)


def _shares(results: ResultSet) -> Table:
    def shares(cell: ReportCell) -> str:
        return " / ".join(f"{share:.0f}" for share in cell.shares.values())

    order = tuple(f"{task.name}: {' / '.join(task.labels)}." for task in results.tasks.values())
    return Table("Share of each predicted label, in per cent", *texts(results, shares), order)


def _copies(results: ResultSet) -> Table:
    def rates(cell: ReportCell) -> str:
        both = (cell.copied_nearest, cell.copied_last)
        return " / ".join("–" if rate is None else f"{rate:.0f}" for rate in both) if both != (None, None) else ""

    title = "Copy rate: the prediction is the class of the nearest / of the last demonstration, in per cent"
    return Table(title, *texts(results, rates))


def _claims(results: ResultSet) -> Table:
    def measured(cell: ReportCell) -> str:
        found = probability_claims(cell)
        if found is None:
            return ""
        likelihood = f"{found.nll:.2f}" if math.isfinite(found.nll) else "∞"
        return f"{likelihood} / {found.brier:.2f} / {found.ece:.0f}"

    title = "What the probabilities claim: negative log-likelihood / Brier score / calibration error in per cent"
    return Table(title, *texts(results, measured), _CLAIMS)


def texts(
    results: ResultSet, text: Callable[[ReportCell], str]
) -> tuple[tuple[TableColumn, ...], tuple[TableSection, ...]]:
    """A text for every cell; rows that have none at all are left out."""
    columns = task_columns(results.tasks, averages=False)

    def rows(block: ReportSection) -> tuple[TableRow, ...]:
        methods, made = results.methods(block), []
        for method in ordered(methods):
            cells = results.row(block, method)
            entries = tuple(TableEntry(text=text(cells[c.name]) if c.name in cells else "") for c in columns)
            if any(entry.text for entry in entries):
                made.append(TableRow(method, row_title(methods[method]), methods[method].labelled, entries))
        return tuple(made)

    return columns, sections(results, rows)


# -- Tables of accuracy and macro-F1 under other shares of the labels.


_TITLES: dict[Pattern, str] = {
    "one-large": f"one label has {LARGE:.0%} of the rows".replace("%", " %"),
    "long-tailed": "each label is half as frequent as the one before",
}
_SHARES_HOW = (
    f"Rows drawn anew from the test rows, label by label and none twice: the mean over {SHARE_DRAWS} draws for each "
    "label in turn as the most frequent, and over seeds. Majority, and what is batch-calibrated, are fitted on each "
    "draw. Every label keeps at least one row: where rows are few, the largest share is smaller than it should be."
)


def share_tables(results: ResultSet, found: Sequence[ResampledCells]) -> list[Table]:
    """One for each pattern that has something to show."""
    tables = [_table(results, pattern, [each for each in found if each.pattern == pattern]) for pattern in PATTERNS]
    return [table for table in tables if table.sections]


def _table(results: ResultSet, pattern: Pattern, own: Sequence[ResampledCells]) -> Table:
    by_key = {each.key: each for each in own}

    def scores(cell: ReportCell) -> str:
        each = by_key.get(cell.key)
        return f"{each.accuracy:.1f} / {each.macro_f1:.1f}" if each else ""

    title = f"Accuracy / macro-F1 in per cent where {_TITLES[pattern]}"
    return Table(title, *texts(results, scores), (_SHARES_HOW, *_left(own)))


def _left(own: Sequence[ResampledCells]) -> list[str]:
    """How many rows a draw has: few rows make a number that other draws would change."""
    sizes: dict[str, dict[str, None]] = {}
    for each in own:
        sizes.setdefault(each.key.task, {})[f"{each.rows:.0f} of {each.of:.0f}"] = None
    said = [f"{task} {' or '.join(found)}" for task, found in sizes.items()]
    return [f"Rows left in a draw, on average: {', '.join(said)}."] if said else []
