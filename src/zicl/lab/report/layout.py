"""A table as plain values, laid out like the paper's, and written as Markdown, CSV or LaTeX.

Columns are tasks, grouped by coverage; rows are methods; sections share a model, a template and an inference.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.cells import MethodTraits, ReportCell, ReportSection, ReportTask, ResultSet

DOUBTFUL, UNFINISHED, NOTED = "†", "‡", "§"
EMPTY = "–"
GROUPS = {True: "Covered by the corpus", False: "Not covered by the corpus", None: "Coverage unknown"}
_AVERAGES = {True: "Avg. covered", False: "Avg. not covered", None: "Avg. unknown"}
_PAPER_TASKS = ("CR", "Amz", "Amz5", "Yelp", "Yelp5", "Tweet", "MR", "SST2", "SST5")
_PAPER_METHODS = (
    "majority", "no-demos", "random-inputs", "naive", "z-icl", "z-icl+cosine", "encoder", "z-icl+",
    "icl-gold", "icl-random", "nearest-icl-gold", "nearest-icl-random",
)  # fmt: skip
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "†": r"$^\dagger$", "‡": r"$^\ddagger$", "§": r"\S{}", "–": "--", "±": r"$\pm$", "∞": r"$\infty$",
    "→": r"$\rightarrow$",
}  # fmt: skip


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
    """The content of a row and column: a number with a deviation or an interval, or a text, or nothing."""

    value: float | None = None
    deviation: float | None = None
    interval: tuple[float, float] | None = None
    text: str = ""
    best: bool = False
    marks: str = ""


@dataclass(frozen=True)
class TableRow:
    """A method; ``oracle`` methods see labelled data."""

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
    """A table with the notes below it."""

    title: str
    columns: tuple[TableColumn, ...]
    sections: tuple[TableSection, ...]
    notes: tuple[str, ...] = ()
    # Write + before positive numbers.
    signed: bool = False

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of columns, and how many columns each spans."""
        return [(name, len(list(members))) for name, members in groupby(self.columns, key=lambda c: c.group)]


# -- columns, rows, sections ---------------------------------------------------------------------


def task_columns(tasks: dict[str, ReportTask], *, averages: bool) -> tuple[TableColumn, ...]:
    """Return the tasks by coverage, the paper's in the paper's order, with an average for each group of several."""
    order = {name: number for number, name in enumerate(_PAPER_TASKS)}
    columns: list[TableColumn] = []
    for covered, group in GROUPS.items():
        members = [task for task in tasks.values() if task.covered is covered]
        members.sort(key=lambda task: order.get(task.name, len(order)))
        columns += [TableColumn(t.name, group, (t.name,), marks=NOTED if t.note else "") for t in members]
        if averages and len(members) > 1:
            columns.append(TableColumn(_AVERAGES[covered], group, tuple(t.name for t in members), average=True))
    return tuple(columns)


def sort_methods(methods: dict[str, MethodTraits]) -> list[str]:
    """Sort methods as the paper does: zero-shot ones, then controls, then those that see labelled data.

    >>> sort_methods({"icl-gold": MethodTraits("ICL", labelled=True), "z-icl": MethodTraits("Z-ICL")})
    ['z-icl', 'icl-gold']
    """

    def rank(name: str) -> tuple[bool, int, bool, str]:
        place = _PAPER_METHODS.index(name) if name in _PAPER_METHODS else len(_PAPER_METHODS)
        return methods[name].labelled, place, methods[name].control, name

    return sorted(methods, key=rank)


def row_title(traits: MethodTraits) -> str:
    """Return a method's title with its traits.

    >>> row_title(MethodTraits("Logistic regression", labelled=True, control=True))
    'Logistic regression (control, oracle)'
    """
    words = {"control": traits.control, "batch-calibrated": traits.batch, "oracle": traits.labelled}
    marks = [word for word, holds in words.items() if holds]
    return f"{traits.title} ({', '.join(marks)})" if marks else traits.title


def section_title(section: ReportSection, *, with_model: bool = True) -> str:
    """Return a heading like the paper's: inference, model, template.

    >>> section_title(ReportSection("GPT-J", "task", "channel"))
    "Channel GPT-J, the task's template"
    """
    if section.inference == NO_INFERENCE:
        return f"Majority and controls ({section.model})" if with_model else "Majority and controls"
    names = {"task": "the task's template", "none": "no template"}
    template = names.get(section.template, f"template {section.template}")
    return f"{section.inference.capitalize()} {section.model}, {template}"


def table_sections(
    results: ResultSet, make_rows: Callable[[ReportSection], tuple[TableRow, ...]]
) -> tuple[TableSection, ...]:
    """Return the sections that have rows.

    Majority and most controls do not depend on the model: equal rows are listed once, without the model's name.
    """
    made = [(section, make_rows(section)) for section in results.sections]
    controls = {rows for section, rows in made if section.inference == NO_INFERENCE}
    listed: list[TableSection] = []
    for section, rows in made:
        repeated = section.inference == NO_INFERENCE and any(other.rows == rows for other in listed)
        if rows and not repeated:
            listed.append(TableSection(section_title(section, with_model=len(controls) > 1), rows))
    return tuple(listed)


def method_rows(
    results: ResultSet, section: ReportSection, make_entries: Callable[[dict[str, ReportCell]], tuple[TableEntry, ...]]
) -> list[TableRow]:
    """Return one row per method of a section, with the entries made from its cells by task."""
    methods = results.methods(section)
    return [
        TableRow(name, row_title(methods[name]), methods[name].labelled, make_entries(results.row(section, name)))
        for name in sort_methods(methods)
    ]


def text_table(results: ResultSet, title: str, text: Callable[[ReportCell], str], notes: Sequence[str] = ()) -> Table:
    """Return a table with a text for every cell; rows without any text are left out."""
    columns = task_columns(results.tasks, averages=False)

    def entries(cells: dict[str, ReportCell]) -> tuple[TableEntry, ...]:
        return tuple(TableEntry(text=text(cells[c.name]) if c.name in cells else "") for c in columns)

    def rows(section: ReportSection) -> tuple[TableRow, ...]:
        return tuple(row for row in method_rows(results, section, entries) if any(entry.text for entry in row.entries))

    return Table(title, columns, table_sections(results, rows), tuple(notes))


def mark_best(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """Mark the best zero-shot entry of every column; entries that print the same are equally good."""
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


# -- formats -------------------------------------------------------------------------------------


def format_number(value: float, *, signed: bool) -> str:
    """Round to one decimal, without a minus before zero.

    >>> format_number(-0.04, signed=True), format_number(3.25, signed=True)
    ('0.0', '+3.2')
    """
    rounded = round(value, 1) or 0.0
    return f"{rounded:+.1f}" if signed and rounded else f"{rounded:.1f}"


def to_markdown(tables: Sequence[Table]) -> str:
    """Return all tables, one below the other."""
    return "\n\n".join(_markdown_table(table) for table in tables) + "\n"


def _markdown_table(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    lines = [f"**{_markdown_escape(table.title)}**", ""]
    lines.append(line(["Method", *(column.name + column.marks for column in table.columns)]))
    lines.append("|---|" + "---:|" * len(table.columns))
    for section in table.sections:
        lines.append(line([f"***{_markdown_escape(section.title)}***", *[""] * len(table.columns)]))
        for row in section.rows:
            cells = [_markdown_entry(entry, signed=table.signed) for entry in row.entries]
            lines.append(line([_markdown_escape(row.title), *cells]))
    groups: dict[str, list[str]] = {}
    for column in table.columns:
        if not column.average:
            groups.setdefault(column.group, []).append(column.name)
    notes = ["; ".join(f"{group}: {', '.join(names)}" for group, names in groups.items()) + ".", *table.notes]
    return "\n".join([*lines, "", *(f"- {_markdown_escape(note)}" for note in notes)])


def _markdown_escape(text: str) -> str:
    return re.sub(r"([|*\\`])", r"\\\1", text)


def _markdown_entry(entry: TableEntry, *, signed: bool) -> str:
    if entry.value is None:
        return _markdown_escape(entry.text) or EMPTY
    text = format_number(entry.value, signed=signed)
    text = f"**{text}**" if entry.best else text
    if entry.deviation is not None:
        text += f" ± {entry.deviation:.1f}"
    if entry.interval is not None:
        text += f" [{', '.join(format_number(end, signed=signed) for end in entry.interval)}]"
    return text + entry.marks


def to_csv(table: Table) -> str:
    """Return a table with one column per mean and per deviation; missing values are empty.

    The last column names the columns whose numbers have a mark, such as that of an unfinished cell.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [name for column in table.columns for name in (column.name, f"{column.name} deviation")]
    writer.writerow(["section", "method", "title", "oracle", *names, "marks"])
    for section in table.sections:
        for row in section.rows:
            values = [value for entry in row.entries for value in (entry.value, entry.deviation)]
            numbers = ["" if value is None else f"{value:.4g}" for value in values]
            marks = [f"{c.name} {e.marks}" for c, e in zip(table.columns, row.entries, strict=True) if e.marks]
            head = [section.title, row.method, row.title, "yes" if row.oracle else "no"]
            writer.writerow([*head, *numbers, "; ".join(marks)])
    return stream.getvalue()


def to_latex(tables: Sequence[Table]) -> str:
    """Return all tables for the booktabs package, as floats with their notes in the caption."""
    return "% needs \\usepackage{booktabs}\n" + "\n".join(_latex_table(table) for table in tables)


def _latex_table(table: Table) -> str:
    width = len(table.columns) + 1
    lines = [r"\begin{table*}", r"\centering\scriptsize", rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}", r"\toprule"]
    groups, rules, start = [""], [], 2
    for name, span in table.groups:
        groups.append(rf"\multicolumn{{{span}}}{{c}}{{{latex_escape(name)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{start + span - 1}}}" if name else "")
        start += span
    lines += [" & ".join(groups) + r" \\", " ".join(filter(None, rules))]
    lines.append(" & ".join(["Method", *(latex_escape(c.name + c.marks) for c in table.columns)]) + r" \\")
    for section in table.sections:
        title = rf"\multicolumn{{{width}}}{{l}}{{\textbf{{\emph{{{latex_escape(section.title)}}}}}}} \\"
        lines += [r"\midrule", title]
        for row in section.rows:
            cells = [_latex_entry(entry, signed=table.signed) for entry in row.entries]
            lines.append(" & ".join([latex_escape(row.title), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = " ".join(latex_escape(note if note.endswith(".") else note + ".") for note in table.notes)
    lines += [rf"\caption{{{latex_escape(table.title)}. {notes}}}", r"\end{table*}", ""]
    return "\n".join(lines)


def latex_escape(text: str) -> str:
    r"""Escape text for LaTeX.

    >>> latex_escape("a_b & 5 %")
    'a\\_b \\& 5 \\%'
    """
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_entry(entry: TableEntry, *, signed: bool) -> str:
    if entry.value is None:
        return latex_escape(entry.text or EMPTY)
    text = format_number(entry.value, signed=signed)
    text = rf"\mathbf{{{text}}}" if entry.best else text
    if entry.deviation is not None:
        text += f"_{{{entry.deviation:.1f}}}"
    if entry.interval is not None:
        text += rf"\,[{', '.join(format_number(end, signed=signed) for end in entry.interval)}]"
    return f"${text}${latex_escape(entry.marks)}"
