"""Tables of accuracy and macro-F1 under other shares of the labels."""

from __future__ import annotations

from collections.abc import Sequence

from zicl.lab.report.cells import Cell, Results
from zicl.lab.report.imbalance import DRAWS, LARGE, PATTERNS, Pattern, Resampled
from zicl.lab.report.side_tables import texts
from zicl.lab.report.table import Table

_TITLES: dict[Pattern, str] = {
    "one-large": f"one label has {LARGE:.0%} of the rows".replace("%", " %"),
    "long-tailed": "each label is half as frequent as the one before",
}
_HOW = (
    f"Rows drawn anew from the test rows, label by label and none twice: the mean over {DRAWS} draws for each label in "
    "turn as the most frequent, and over seeds. Majority, and what is batch-calibrated, are fitted on each draw. Every "
    "label keeps at least one row: where rows are few, the largest share is smaller than it should be."
)


def share_tables(results: Results, found: Sequence[Resampled]) -> list[Table]:
    """One for each pattern that has something to show."""
    tables = [_table(results, pattern, [each for each in found if each.pattern == pattern]) for pattern in PATTERNS]
    return [table for table in tables if table.sections]


def _table(results: Results, pattern: Pattern, own: Sequence[Resampled]) -> Table:
    by_key = {each.key: each for each in own}

    def scores(cell: Cell) -> str:
        each = by_key.get(cell.key)
        return f"{each.accuracy:.1f} / {each.macro_f1:.1f}" if each else ""

    title = f"Accuracy / macro-F1 in per cent where {_TITLES[pattern]}"
    return Table(title, *texts(results, scores), (_HOW, *_left(own)))


def _left(own: Sequence[Resampled]) -> list[str]:
    """How many rows a draw has: few rows make a number that other draws would change."""
    sizes: dict[str, dict[str, None]] = {}
    for each in own:
        sizes.setdefault(each.key.task, {})[f"{each.rows:.0f} of {each.of:.0f}"] = None
    said = [f"{task} {' or '.join(found)}" for task, found in sizes.items()]
    return [f"Rows left in a draw, on average: {', '.join(said)}."] if said else []
