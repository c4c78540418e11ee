"""Tables as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from zicl.lab.report.table import Table, TableEntry

NOTHING = "–"
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "†": r"$^\dagger$", "‡": r"$^\ddagger$", "§": r"\S{}", "–": "--", "±": r"$\pm$", "∞": r"$\infty$",
    "→": r"$\rightarrow$",
}  # fmt: skip


def markdown(tables: Sequence[Table]) -> str:
    """All tables, one below the other."""
    return "\n\n".join(_markdown(table) for table in tables) + "\n"


def _markdown(table: Table) -> str:
    lines = [f"**{_escape(table.title)}**", ""]
    lines.append(_line(["Method", *(column.name + column.marks for column in table.columns)]))
    lines.append("|---|" + "---:|" * len(table.columns))
    for section in table.sections:
        lines.append(_line([f"***{_escape(section.title)}***", *[""] * len(table.columns)]))
        for row in section.rows:
            cells = [_markdown_entry(entry, signed=table.signed) for entry in row.entries]
            lines.append(_line([_escape(row.title), *cells]))
    groups: dict[str, list[str]] = {}
    for column in table.columns:
        if not column.average:
            groups.setdefault(column.group, []).append(column.name)
    notes = ["; ".join(f"{group}: {', '.join(names)}" for group, names in groups.items()) + ".", *table.notes]
    return "\n".join([*lines, "", *(f"- {_escape(note)}" for note in notes)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escape(text: str) -> str:
    return re.sub(r"([|*\\`])", r"\\\1", text)


def number(value: float, *, signed: bool) -> str:
    """One decimal; no minus before a zero.

    >>> number(-0.04, signed=True), number(3.25, signed=True)
    ('0.0', '+3.2')
    """
    rounded = round(value, 1) or 0.0
    return f"{rounded:+.1f}" if signed and rounded else f"{rounded:.1f}"


def _markdown_entry(entry: TableEntry, *, signed: bool) -> str:
    if entry.value is None:
        return _escape(entry.text) or NOTHING
    text = number(entry.value, signed=signed)
    text = f"**{text}**" if entry.best else text
    if entry.deviation is not None:
        text += f" ± {entry.deviation:.1f}"
    if entry.interval is not None:
        text += f" [{', '.join(number(end, signed=signed) for end in entry.interval)}]"
    return text + entry.marks


def to_csv(table: Table) -> str:
    """The main table with a column for every mean and every deviation; what is missing stays empty.

    The last column names the columns whose numbers bear a mark, e.g. of a cell that is not finished.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [name for column in table.columns for name in (column.name, f"{column.name} deviation")]
    writer.writerow(["section", "method", "title", "oracle", *names, "marks"])
    for section in table.sections:
        for row in section.rows:
            values = [value for entry in row.entries for value in (entry.value, entry.deviation)]
            texts = ["" if value is None else f"{value:.4g}" for value in values]
            marks = [f"{c.name} {e.marks}" for c, e in zip(table.columns, row.entries, strict=True) if e.marks]
            told = [section.title, row.method, row.title, "yes" if row.oracle else "no"]
            writer.writerow([*told, *texts, "; ".join(marks)])
    return stream.getvalue()


def latex(tables: Sequence[Table]) -> str:
    """All tables for the booktabs package, as floats with their notes below."""
    return "% needs \\usepackage{booktabs}\n" + "\n".join(_latex(table) for table in tables)


def _latex(table: Table) -> str:
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
    r"""Text that LaTeX prints as it is.

    >>> latex_escape("a_b & 5 %")
    'a\\_b \\& 5 \\%'
    """
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_entry(entry: TableEntry, *, signed: bool) -> str:
    if entry.value is None:
        return latex_escape(entry.text or NOTHING)
    text = number(entry.value, signed=signed)
    text = rf"\mathbf{{{text}}}" if entry.best else text
    if entry.deviation is not None:
        text += f"_{{{entry.deviation:.1f}}}"
    if entry.interval is not None:
        text += rf"\,[{', '.join(number(end, signed=signed) for end in entry.interval)}]"
    return f"${text}${latex_escape(entry.marks)}"
