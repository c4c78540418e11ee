"""What is to be said below the main table: controls that win, stand-ins, and what is not finished."""

from __future__ import annotations

from collections.abc import Sequence

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.cells import MethodTraits, Metric, ReportCell, ReportSection, ResultSet, mean_and_deviation
from zicl.lab.report.paper import paper_notes, paper_sections
from zicl.lab.report.table import (
    GROUPS,
    NOTED,
    UNFINISHED,
    Table,
    TableColumn,
    TableEntry,
    TableRow,
    mark_best,
    ordered,
    row_title,
    section_title,
    sections,
    task_columns,
)

_OURS = "z-icl"
# Below this share of the demonstrations that were found, it is said how many were shown.
_ROOM = 0.95


def main_notes(results: ResultSet, metric: Metric) -> list[str]:
    """All notes, the ones that change how the table is read first."""
    notes = ["Bold: the best of a section in its column, oracles aside.", *size_notes(results), *results.notes]
    notes += [*control_notes(results, metric), *room_notes(results)]
    notes += [f"{NOTED} {task.name}: {task.note.rstrip('.')}." for task in results.tasks.values() if task.note]
    notes += coverage_notes(results)
    if any(cell.kind.labelled for cell in results.cells.values()):
        notes.append("An oracle sees labelled data and is not comparable with the rest.")
    if results.missing:
        cells = [cell for cell in results.cells.values() if cell.missing]
        total = sum(max(cell.expected, cell.present) for cell in results.cells.values())
        where = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
        notes.append(
            f"{results.missing:,} of {total:,} predictions are missing, in {where}: the results are not finished "
            f"({UNFINISHED} marks numbers from a part of the examples or seeds)."
        )
    return notes


def size_notes(results: ResultSet) -> list[str]:
    """How many examples and seeds the numbers rest on, and whether these are the same everywhere."""
    cells = [cell for cell in results.cells.values() if cell.runs]
    if not cells:
        return []
    examples = sorted({len(run.examples) for cell in cells for run in cell.runs})
    seeds = sorted({len(cell.runs) for cell in cells if any(run.seed is not None for run in cell.runs)})
    said = [_counted(examples, "example", "examples"), *([_counted(seeds, "seed", "seeds")] if seeds else [])]
    unequal = len(examples) > 1 or len(seeds) > 1
    care = ": compare such numbers with care; tables of differences take what both sides have" if unequal else ""
    return [f"A number rests on {' and '.join(said)}{care}."]


def _counted(counts: Sequence[int], one: str, many: str) -> str:
    low, high = counts[0], counts[-1]
    return f"{low:,} {one if low == 1 else many}" if low == high else f"{low:,} to {high:,} {many}"


def room_notes(results: ResultSet) -> list[str]:
    """Which methods the token limit left fewer demonstrations than were found for them, and how many."""
    # What is too long is so with every inference: the mean over these says it once.
    rooms: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for key, cell in results.cells.items():
        if room := cell.room:
            rooms.setdefault((key.model, key.method, key.task), []).append(room)
    titles = {(key.model, key.method): cell.kind.title for key, cell in results.cells.items()}
    cut: dict[tuple[str, str], list[str]] = {}
    for (model, method, task), each in rooms.items():
        kept, found = (sum(values) / len(each) for values in zip(*each, strict=True))
        if kept < _ROOM * found:
            cut.setdefault((model, method), []).append(f"{task} {kept:.1f} of {found:.0f}")
    if not cut:
        return []
    of = {key: f"{title} ({key[0]})" if len(results.models) > 1 else title for key, title in titles.items()}
    said = "; ".join(f"{of[key]} on {', '.join(tasks)}" for key, tasks in cut.items())
    return [f"The limit on tokens left fewer demonstrations, in the mean: {said}."]


def coverage_notes(results: ResultSet) -> list[str]:
    """How to put a task into one of the two groups; where folders disagree about it, it is in neither as well."""
    unknown = [task.name for task in results.tasks.values() if task.covered is None]
    notes = []
    if len(unknown) < len(results.tasks):
        notes.append("Whether the corpus covers a task: as the experiment says, else as with the paper's corpus.")
    if not unknown:
        return notes
    return [
        *notes,
        f"{GROUPS[None]}: the results do not say, or disagree, whether the corpus covers {', '.join(unknown)}. "
        "To say it, set covered = true or false in a task's table, or TASK = true or false under [covered] in the "
        "experiment, and run zicl evaluate again: no row is computed anew.",
    ]


def control_notes(results: ResultSet, metric: Metric) -> list[str]:
    """A sentence for every control that beats z-icl, on average or on a task: such a win is not hidden."""
    notes = []
    for block in results.blocks:
        if block.inference == NO_INFERENCE:
            continue
        methods = results.methods(block)
        controls = [(kind, results.row(block, name)) for name, kind in methods.items() if kind.control]
        others = {name: results.row(block, name) for name, kind in methods.items() if not kind.control}
        for kind, cells in (*results.beside(block), *controls):
            sentence = _wins(kind, cells, others, metric)
            if sentence:
                notes.append(f"{section_title(block)}: {sentence}.")
    return notes


def _wins(
    kind: MethodTraits, cells: dict[str, ReportCell], others: dict[str, dict[str, ReportCell]], metric: Metric
) -> str:
    ours = others.get(_OURS, {})
    found = {task: _both(cells, ours, [task], metric) for task in cells if task in ours}
    scores = {task: both for task, both in found.items() if both is not None}
    better = [task for task, (control, own) in scores.items() if control > own]
    said = []
    average = _both(cells, ours, list(scores), metric) if len(scores) > 1 else None
    if average and average[0] > average[1]:
        said.append(f"on average ({average[0]:.1f} against {average[1]:.1f})")
    if better:
        said.append(f"on {len(better)} of {len(scores)} tasks ({', '.join(better)})")
    sentence = f"{_named(kind)} beats {_OURS} {' and '.join(said)}" if said else ""
    if _beats_all(cells, others, metric):
        every = "every language-model method on average"
        sentence = f"{sentence}; it beats {every}" if sentence else f"{_named(kind)} beats {every}"
    return sentence


def _named(kind: MethodTraits) -> str:
    return (
        f"{'the control ' if kind.control else ''}{kind.title}{', which sees labelled data,' if kind.labelled else ''}"
    )


def _beats_all(cells: dict[str, ReportCell], others: dict[str, dict[str, ReportCell]], metric: Metric) -> bool:
    compared = [_both(cells, other, [t for t in cells if t in other], metric) for other in others.values()]
    known = [both for both in compared if both is not None]
    return bool(known) and all(control > other for control, other in known)


def _both(
    first: dict[str, ReportCell], second: dict[str, ReportCell], tasks: Sequence[str], metric: Metric
) -> tuple[float, float] | None:
    """The two means over the tasks, where both have a number for each."""
    shared = [task for task in tasks if first[task].runs and second[task].runs]
    one, _ = mean_and_deviation([first[task] for task in shared], metric)
    other, _ = mean_and_deviation([second[task] for task in shared], metric)
    return None if one is None or other is None else (one, other)


# -- The main table: methods by tasks, in the paper's shape, with the paper's numbers beside ours if asked for.


_TITLES = {"accuracy": "Accuracy", "macro-f1": "Macro-F1"}


def main_table(results: ResultSet, metric: Metric = "accuracy", *, paper: bool = False) -> Table:
    """Mean and standard deviation over seeds, the best zero-shot method of each section's columns marked."""
    columns = task_columns(results.tasks, averages=True)

    def rows(block: ReportSection) -> tuple[TableRow, ...]:
        methods, made = results.methods(block), []
        for method in ordered(methods):
            cells = results.row(block, method)
            entries = tuple(_entry(cells, column, metric) for column in columns)
            made.append(TableRow(method, row_title(methods[method]), methods[method].labelled, entries))
        return mark_best(made)

    shown = sections(results, rows)
    notes = main_notes(results, metric)
    if paper:
        shown += tuple(paper_sections(columns))
        notes += paper_notes(columns, results.majorities)
    title = f"{_TITLES[metric]} in per cent, mean and standard deviation over seeds"
    return Table(title, columns, shown, tuple(notes))


def _entry(cells: dict[str, ReportCell], column: TableColumn, metric: Metric) -> TableEntry:
    members = [cells[task] for task in column.tasks if task in cells]
    # An average over some of the tasks would not compare with the other rows.
    if len(members) < len(column.tasks):
        return TableEntry()
    mean, deviation = mean_and_deviation(members, metric)
    late = mean is not None and any(cell.missing for cell in members)
    return TableEntry(mean, deviation, marks=UNFINISHED if late else "")
