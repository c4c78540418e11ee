"""The tables of a report: the main table with its notes, differences, predicted labels, copy rates, probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.cells import MethodTraits, Metric, ReportCell, ReportSection, ResultSet, mean_and_deviation
from zicl.lab.report.layout import (
    EMPTY,
    GROUPS,
    NOTED,
    UNFINISHED,
    Table,
    TableColumn,
    TableEntry,
    TableRow,
    mark_best,
    method_rows,
    row_title,
    section_title,
    sort_methods,
    table_sections,
    task_columns,
    text_table,
)
from zicl.lab.report.paper import paper_notes, paper_sections
from zicl.lab.report.reliability import BINS, probability_metrics
from zicl.lab.report.statistics import DRAWS, Difference

_METRICS = {"accuracy": "Accuracy", "macro-f1": "Macro-F1"}
_OURS = "z-icl"
_SIGNIFICANT = 0.05
# A note gives the number of demonstrations if less than this share of the retrieved ones fit into the prompts.
_FITTING_SHARE = 0.95
# The cells of a method, by task.
CellsByTask = dict[str, ReportCell]


def main_table(results: ResultSet, metric: Metric = "accuracy", *, paper: bool = False) -> Table:
    """Return mean and standard deviation over seeds, with the best zero-shot method of each section marked.

    ``paper`` adds the paper's rows.
    """
    columns = task_columns(results.tasks, averages=True)

    def rows(section: ReportSection) -> tuple[TableRow, ...]:
        return mark_best(method_rows(results, section, lambda cells: tuple(_score(cells, c, metric) for c in columns)))

    sections = table_sections(results, rows)
    notes = _main_notes(results, metric)
    if paper:
        sections += tuple(paper_sections(columns))
        notes += paper_notes(columns, results.guessing)
    title = f"{_METRICS[metric]} in per cent, mean and standard deviation over seeds"
    return Table(title, columns, sections, tuple(notes))


def _score(cells: CellsByTask, column: TableColumn, metric: Metric) -> TableEntry:
    members = [cells[task] for task in column.tasks if task in cells]
    # An average over some of the tasks would not compare with the other rows.
    if len(members) < len(column.tasks):
        return TableEntry()
    mean, deviation = mean_and_deviation(members, metric)
    unfinished = mean is not None and any(cell.missing for cell in members)
    return TableEntry(mean, deviation, marks=UNFINISHED if unfinished else "")


# -- notes of the main table -----------------------------------------------------------------------


def _main_notes(results: ResultSet, metric: Metric) -> list[str]:
    """Return all notes, those that change how the table is read first."""
    notes = ["Bold: the best of a section in its column, oracles aside.", *_size_notes(results), *results.notes]
    notes += [*_control_notes(results, metric), *_truncation_notes(results)]
    notes += [f"{NOTED} {task.name}: {task.note.rstrip('.')}." for task in results.tasks.values() if task.note]
    notes += _coverage_notes(results)
    if any(cell.kind.labelled for cell in results.cells.values()):
        notes.append("An oracle sees labelled data and is not comparable with the rest.")
    if results.missing:
        unfinished = sum(1 for cell in results.cells.values() if cell.missing)
        total = sum(max(cell.expected, cell.present) for cell in results.cells.values())
        notes.append(
            f"{results.missing:,} of {total:,} predictions are missing, in {unfinished} "
            f"cell{'s' if unfinished > 1 else ''}: the results are not finished "
            f"({UNFINISHED} marks numbers from a part of the examples or seeds)."
        )
    return notes


def _size_notes(results: ResultSet) -> list[str]:
    """Give the numbers of examples and seeds behind each number, and warn if they differ."""
    cells = [cell for cell in results.cells.values() if cell.runs]
    if not cells:
        return []
    examples = sorted({len(run.examples) for cell in cells for run in cell.runs})
    seeds = sorted({len(cell.runs) for cell in cells if any(run.seed is not None for run in cell.runs)})
    sizes = [_count(counts, unit) for counts, unit in ((examples, "example"), (seeds, "seed")) if counts]
    unequal = len(examples) > 1 or len(seeds) > 1
    care = ": compare such numbers with care; tables of differences take what both sides have" if unequal else ""
    return [f"A number rests on {' and '.join(sizes)}{care}."]


def _count(counts: Sequence[int], unit: str) -> str:
    low, high = counts[0], counts[-1]
    return f"{low:,} {unit}{'' if low == 1 else 's'}" if low == high else f"{low:,} to {high:,} {unit}s"


def _truncation_notes(results: ResultSet) -> list[str]:
    """Name the methods whose prompts the token limit left with fewer demonstrations than were retrieved."""
    # A prompt that is too long is so with every inference: their mean is given once.
    counts: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for key, cell in results.cells.items():
        if cell.demonstrations:
            counts.setdefault((key.model, key.method, key.task), []).append(cell.demonstrations)
    truncated: dict[tuple[str, str], list[str]] = {}
    for (model, method, task), pairs in counts.items():
        kept, retrieved = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
        if kept < _FITTING_SHARE * retrieved:
            truncated.setdefault((model, method), []).append(f"{task} {kept:.1f} of {retrieved:.0f}")
    if not truncated:
        return []
    titles = {(key.model, key.method): cell.kind.title for key, cell in results.cells.items()}
    names = {key: f"{title} ({key[0]})" if len(results.models) > 1 else title for key, title in titles.items()}
    listed = "; ".join(f"{names[key]} on {', '.join(tasks)}" for key, tasks in truncated.items())
    return [f"The limit on tokens left fewer demonstrations, in the mean: {listed}."]


def _coverage_notes(results: ResultSet) -> list[str]:
    """Say where coverage comes from, and how to set it for tasks whose coverage is unknown."""
    unknown = [task.name for task in results.tasks.values() if task.covered is None]
    notes = []
    if len(unknown) < len(results.tasks):
        notes.append("Whether the corpus covers a task: as the experiment says, else as with the paper's corpus.")
    if unknown:
        notes.append(
            f"{GROUPS[None]}: the results do not say, or disagree, whether the corpus covers {', '.join(unknown)}. "
            "To say it, set covered = true or false in a task's table, or TASK = true or false under [covered] in the "
            "experiment, and run zicl evaluate again: no row is computed anew."
        )
    return notes


def _control_notes(results: ResultSet, metric: Metric) -> list[str]:
    """Name every control that beats z-icl, on average or on a task: such a result must not be overlooked."""
    notes = []
    for section in results.sections:
        if section.inference == NO_INFERENCE:
            continue
        methods = results.methods(section)
        controls = [(traits, results.row(section, name)) for name, traits in methods.items() if traits.control]
        others = {name: results.row(section, name) for name, traits in methods.items() if not traits.control}
        for traits, cells in (*results.without_prompt(section).values(), *controls):
            if sentence := _describe_wins(traits, cells, others, metric):
                notes.append(f"{section_title(section)}: {sentence}.")
    return notes


def _describe_wins(traits: MethodTraits, cells: CellsByTask, others: dict[str, CellsByTask], metric: Metric) -> str:
    name = (
        f"{'the control ' if traits.control else ''}{traits.title}"
        f"{', which sees labelled data,' if traits.labelled else ''}"
    )
    ours = others.get(_OURS, {})
    means = {task: _mean_scores(cells, ours, [task], metric) for task in cells if task in ours}
    scores = {task: both for task, both in means.items() if both is not None}
    won = [task for task, (control, our_score) in scores.items() if control > our_score]
    wins = []
    average = _mean_scores(cells, ours, list(scores), metric) if len(scores) > 1 else None
    if average and average[0] > average[1]:
        wins.append(f"on average ({average[0]:.1f} against {average[1]:.1f})")
    if won:
        wins.append(f"on {len(won)} of {len(scores)} tasks ({', '.join(won)})")
    sentence = f"{name} beats {_OURS} {' and '.join(wins)}" if wins else ""
    if _beats_all(cells, others, metric):
        every = "every language-model method on average"
        return f"{sentence}; it beats {every}" if sentence else f"{name} beats {every}"
    return sentence


def _beats_all(cells: CellsByTask, others: dict[str, CellsByTask], metric: Metric) -> bool:
    compared = [_mean_scores(cells, other, [t for t in cells if t in other], metric) for other in others.values()]
    known = [both for both in compared if both is not None]
    return bool(known) and all(control > other for control, other in known)


def _mean_scores(
    first: CellsByTask, second: CellsByTask, tasks: Sequence[str], metric: Metric
) -> tuple[float, float] | None:
    """Return the two means over the tasks on which both have rows."""
    shared = [task for task in tasks if first[task].runs and second[task].runs]
    one, _ = mean_and_deviation([first[task] for task in shared], metric)
    other, _ = mean_and_deviation([second[task] for task in shared], metric)
    return None if one is None or other is None else (one, other)


# -- the other tables ------------------------------------------------------------------------------


def side_tables(results: ResultSet, differences: Sequence[Difference]) -> list[Table]:
    """Return all other tables that have rows."""
    baselines = dict.fromkeys(each.baseline for each in differences)
    tables = [
        *(_difference_table(results, name, [d for d in differences if d.baseline == name]) for name in baselines),
        _predicted_label_table(results),
        _copy_rate_table(results),
        _probability_table(results),
    ]
    return [table for table in tables if table.sections]


def _difference_table(results: ResultSet, baseline: str, differences: Sequence[Difference]) -> Table:
    columns = task_columns(results.tasks, averages=False)
    if len(columns) > 1:
        columns += (TableColumn("All tasks", "", tuple(results.tasks), average=True),)
    by_place = {(each.section, each.method, each.task): each for each in differences}

    def entry(section: ReportSection, method: str, column: TableColumn) -> TableEntry:
        difference = by_place.get((section, method, None if column.average else column.name))
        # An average over some of the tasks would not compare with the other rows.
        if difference is None or difference.tasks < len(column.tasks):
            return TableEntry()
        interval = (difference.low, difference.high)
        return TableEntry(difference.estimate, interval=interval, best=difference.p_holm < _SIGNIFICANT)

    def rows(section: ReportSection) -> tuple[TableRow, ...]:
        # Not the section's methods alone: those without a prompt are compared in every section.
        methods = {each.method: each.kind for each in differences if each.section == section}
        return tuple(
            TableRow(
                name,
                row_title(methods[name]),
                methods[name].labelled,
                tuple(entry(section, name, column) for column in columns),
            )
            for name in sort_methods(methods)
        )

    note = (
        f"95 % intervals from {DRAWS:,} paired draws of examples and seeds; one or two seeds say little about the "
        "spread over seeds. Bold: p < 0.05 after Holm's correction over all differences of this report; p is the share "
        "of draws beyond zero, or the normal tail where there are hardly any, and never below what the examples that "
        "differ could say if all of them were for one side."
    )
    title = f"Difference in accuracy to {baseline}, in percentage points"
    return Table(title, columns, table_sections(results, rows), (note,), signed=True)


def _predicted_label_table(results: ResultSet) -> Table:
    def shares(cell: ReportCell) -> str:
        return " / ".join(f"{share:.0f}" for share in cell.shares.values())

    labels = [f"{task.name}: {' / '.join(task.labels)}." for task in results.tasks.values()]
    return text_table(results, "Share of each predicted label, in per cent", shares, labels)


def _copy_rate_table(results: ResultSet) -> Table:
    def rates(cell: ReportCell) -> str:
        both = (cell.copied_nearest, cell.copied_last)
        return " / ".join(EMPTY if rate is None else f"{rate:.0f}" for rate in both) if both != (None, None) else ""

    title = "Copy rate: the prediction is the class of the nearest / of the last demonstration, in per cent"
    return text_table(results, title, rates)


def _probability_table(results: ResultSet) -> Table:
    def metrics(cell: ReportCell) -> str:
        values = probability_metrics(cell)
        if values is None:
            return ""
        nll = f"{values.nll:.2f}" if math.isfinite(values.nll) else "∞"
        return f"{nll} / {values.brier:.2f} / {values.ece:.0f}"

    title = "What the probabilities claim: negative log-likelihood / Brier score / calibration error in per cent"
    notes = [
        "Lower is better. Log-likelihood in nats; the Brier score is summed over labels, from 0 to 2; the expected "
        f"calibration error has {BINS} adaptive bins of equally many texts, and lies above zero by chance where texts "
        "are few. Means over seeds.",
        "Probabilities are a softmax of the scores. Cosines are not meant as such and are left out.",
    ]
    return text_table(results, title, metrics, notes)
