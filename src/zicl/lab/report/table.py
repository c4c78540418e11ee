"""A table as a small neutral structure: sections of rows over columns of tasks. The formats are elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.cells import MethodTraits, ReportSection, ReportTask, ResultSet

DOUBTFUL, UNFINISHED, NOTED = "†", "‡", "§"
GROUPS = {True: "Covered by the corpus", False: "Not covered by the corpus", None: "Coverage unknown"}
_PAPER_TASKS = ("CR", "Amz", "Amz5", "Yelp", "Yelp5", "Tweet", "MR", "SST2", "SST5")
_ORDER = ("majority", "no-demos", "random-inputs", "naive", "z-icl", "z-icl+")
_ORACLES = ("icl-gold", "icl-random", "nearest-icl-gold", "nearest-icl-random")
_SHORT = {True: "covered", False: "not covered", None: "unknown"}


@dataclass(frozen=True)
class TableColumn:
    """A task, or (``average``) the average of the tasks of its group."""

    name: str
    group: str
    tasks: tuple[str, ...]
    average: bool = False
    marks: str = ""


@dataclass(frozen=True)
class TableEntry:
    """What stands in a row and column: a number with a deviation or an interval, or a text, or nothing."""

    value: float | None = None
    deviation: float | None = None
    interval: tuple[float, float] | None = None
    text: str = ""
    best: bool = False
    marks: str = ""


@dataclass(frozen=True)
class TableRow:
    """A method; ``oracle`` ones see labelled data."""

    method: str
    title: str
    oracle: bool
    entries: tuple[TableEntry, ...]


@dataclass(frozen=True)
class TableSection:
    """Rows under one heading."""

    title: str
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class Table:
    """A table with what is to be said below it."""

    title: str
    columns: tuple[TableColumn, ...]
    sections: tuple[TableSection, ...]
    notes: tuple[str, ...] = ()
    # Write + before what is above zero.
    signed: bool = False

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of columns, and how many columns each spans."""
        return [(name, len(list(members))) for name, members in groupby(self.columns, key=lambda c: c.group)]


def task_columns(tasks: dict[str, ReportTask], *, averages: bool) -> tuple[TableColumn, ...]:
    """The tasks, grouped by coverage, the paper's in the paper's order; a group of several has an average."""
    paper = {name: number for number, name in enumerate(_PAPER_TASKS)}
    columns: list[TableColumn] = []
    for covered, group in GROUPS.items():
        members = [task for task in tasks.values() if task.covered is covered]
        members.sort(key=lambda task: paper.get(task.name, len(paper)))
        columns += [TableColumn(t.name, group, (t.name,), marks=NOTED if t.note else "") for t in members]
        if averages and len(members) > 1:
            names = tuple(task.name for task in members)
            columns.append(TableColumn(f"Avg. {_SHORT[covered]}", group, names, average=True))
    return tuple(columns)


def ordered(methods: dict[str, MethodTraits]) -> list[str]:
    """Methods in the paper's order: zero-shot ones, then their controls, then those that see labelled data.

    >>> ordered({"icl-gold": MethodTraits("ICL", labelled=True), "z-icl": MethodTraits("Z-ICL")})
    ['z-icl', 'icl-gold']
    """

    def rank(name: str) -> tuple[bool, int, bool, str]:
        known = (*_ORDER, *_ORACLES)
        place = known.index(name) if name in known else len(known)
        return methods[name].labelled, place, methods[name].control, name

    return sorted(methods, key=rank)


def row_title(kind: MethodTraits) -> str:
    """A method's title with what sort it is.

    >>> row_title(MethodTraits("Logistic regression", labelled=True, control=True))
    'Logistic regression (control, oracle)'
    """
    sorts = (("control", kind.control), ("batch-calibrated", kind.batch), ("oracle", kind.labelled))
    marks = [word for word, holds in sorts if holds]
    return f"{kind.title} ({', '.join(marks)})" if marks else kind.title


def section_title(block: ReportSection, *, named: bool = True) -> str:
    """A heading like the paper's: inference, model, template.

    >>> section_title(ReportSection("GPT-J", "task", "channel"))
    "Channel GPT-J, the task's template"
    """
    if block.inference == NO_INFERENCE:
        return f"Majority and controls ({block.model})" if named else "Majority and controls"
    template = {"task": "the task's template", "none": "no template"}.get(block.template, f"template {block.template}")
    return f"{block.inference.capitalize()} {block.model}, {template}"


def sections(results: ResultSet, rows_of: Callable[[ReportSection], tuple[TableRow, ...]]) -> tuple[TableSection, ...]:
    """A section for each block that has rows.

    Majority and most controls are the same whatever the model: where they are, they stand once and unnamed.
    """
    made = [(block, rows_of(block)) for block in results.blocks]
    alone = {rows for block, rows in made if block.inference == NO_INFERENCE}
    shown: list[TableSection] = []
    for block, rows in made:
        repeated = block.inference == NO_INFERENCE and any(section.rows == rows for section in shown)
        if rows and not repeated:
            shown.append(TableSection(section_title(block, named=len(alone) > 1), rows))
    return tuple(shown)


def mark_best(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """The rows with the best zero-shot entry of every column marked; what prints the same is equally good."""
    zero_shot = [row for row in rows if not row.oracle]
    if len(zero_shot) < 2:
        return tuple(rows)
    best = [
        max((round(entry.value, 1) for entry in entries if entry.value is not None), default=None)
        for entries in zip(*(row.entries for row in zero_shot), strict=True)
    ]

    def marked(row: TableRow) -> TableRow:
        pairs = zip(row.entries, best, strict=True)
        return replace(
            row, entries=tuple(replace(e, best=e.value is not None and round(e.value, 1) == top) for e, top in pairs)
        )

    return tuple(row if row.oracle else marked(row) for row in rows)
