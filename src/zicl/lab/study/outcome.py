"""The rows of a study as numbers with intervals: series for its figures, and words for its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.cells import ReportCell, ReportSection, ResultSet, SeedRun, common_seeds
from zicl.lab.report.plotting import Style
from zicl.lab.report.statistics import Bootstrap, Interval, Term, contrast, correct
from zicl.lab.study.figures import Panel, Point, Series

Measure = Callable[[SeedRun], NDArray[np.bool_]]
# Some examples by task and seed: training examples may be others for every seed, and so what is near.
Examples = Mapping[str, Mapping[int | None, NDArray[np.int64]]]
AVERAGE = "average"


def copied_nearest(run: SeedRun) -> NDArray[np.bool_]:
    """Return which predictions are the label shown with the nearest demonstration."""
    return np.asarray((run.predicted == run.nearest) & (run.nearest >= 0))


def copy_rate(run: SeedRun) -> NDArray[np.bool_]:
    """Return which predictions are the label shown with the input itself."""
    assert run.identical is not None
    return np.asarray(run.predicted == run.identical)


@dataclass(frozen=True, eq=False)
class SectionOutcome:
    """The rows of one inference (and template and model): one panel of each figure, and the subject of findings.

    Comparisons are weighted sums of methods in percentage points: ``{"z-icl": 1, "naive": -1}`` is a difference.
    """

    name: str
    section: ReportSection
    results: ResultSet
    bootstrap: Bootstrap
    # The examples that are compared; all of all tasks without it.
    examples: Examples | None = None

    def row(self, method: str) -> dict[str, ReportCell]:
        """Return the cells of a method by task."""
        cells = self.results.row(self.section, method)
        if self.examples is None:
            return cells
        return {
            task: replace(cells[task], runs=tuple(_runs_among(cells[task].runs, by_seed)))
            for task, by_seed in self.examples.items()
            if task in cells and len(all_seeds(by_seed))
        }

    def among(self, examples: Examples) -> SectionOutcome:
        """Return the outcome of some examples alone; tasks without any are left out."""
        return replace(self, examples=examples)

    def has(self, *methods: str) -> bool:
        """Return whether all these methods have rows."""
        return all(any(cell.runs for cell in self.row(name).values()) for name in methods)

    def tasks(self, methods: Iterable[str]) -> list[str]:
        """Return the tasks on which all these methods have rows."""
        rows = [self.row(name) for name in methods]
        return [task for task in self.results.tasks if all(task in row and row[task].runs for row in rows)]

    def compare(
        self,
        weights: Mapping[str, float],
        *,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int | None] | None = None,
        measure: Measure = correct,
    ) -> Interval | None:
        """Return a weighted sum of methods, paired and averaged over tasks; None without common rows.

        ``tasks`` are by default those that all methods have, ``seeds`` all seeds.
        """
        pairs = []
        for task in self.tasks(weights) if tasks is None else tasks:
            cells = {name: self.row(name)[task] for name in weights}
            if seeds is not None:
                cells = {name: _with_seeds(cell, seeds) for name, cell in cells.items()}
            pairs.append(contrast([Term(weight, cells[name], measure) for name, weight in weights.items()]))
        known = [pair for pair in pairs if pair is not None]
        return self.bootstrap.compare(known) if known else None

    def similarities(self, method: str) -> dict[str, dict[int | None, tuple[NDArray[np.int64], NDArray[np.float64]]]]:
        """Return each task's examples with the similarity of a method's nearest sentence, by seed."""
        found = dict[str, dict[int | None, tuple[NDArray[np.int64], NDArray[np.float64]]]]()
        for task, cell in self.row(method).items():
            for run in cell.runs:
                if run.similarity is not None:
                    known = ~np.isnan(run.similarity)
                    found.setdefault(task, {})[run.seed] = run.examples[known], run.similarity[known]
        return found

    def thirds(self, method: str) -> tuple[SectionOutcome, SectionOutcome]:
        """Return the third of each task's examples whose nearest sentence is farthest, and the nearest third."""
        far, near = dict[str, dict[int | None, NDArray[np.int64]]](), dict[str, dict[int | None, NDArray[np.int64]]]()
        for task, by_seed in self.similarities(method).items():
            ordered = {seed: each[np.argsort(value, kind="stable")] for seed, (each, value) in by_seed.items()}
            far[task] = {seed: order[: max(1, len(order) // 3)] for seed, order in ordered.items()}
            near[task] = {seed: order[-max(1, len(order) // 3) :] for seed, order in ordered.items()}
        return self.among(far), self.among(near)

    def median_similarity(self, method: str) -> str:
        """Return the median similarity of a method's nearest sentences, in words."""
        values = [each for by_seed in self.similarities(method).values() for _, each in by_seed.values()]
        return f"median similarity {np.median(np.concatenate(values)):.2f}" if values else "no rows yet"

    def size(self, methods: Sequence[str]) -> str:
        """Describe how many tasks, examples and seeds a comparison of methods is based on."""
        tasks = self.tasks(methods)
        cells = [self.row(method)[task] for method in methods for task in tasks]
        if not cells:
            return "no rows yet"
        seeds = len(_shared_seeds(cells))
        counts = sorted({len(run.examples) for cell in cells for run in cell.runs})
        examples = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        return f"{', '.join(tasks)}; {examples} examples a task, {seeds} seed{'s' if seeds != 1 else ''}"

    def bars(self, title: str, style: Style, groups: Mapping[str, Mapping[str, float]]) -> Series:
        """Return one bar per group, each a weighted sum of methods averaged over tasks."""
        return interval_series(title, style, {group: self.compare(weights) for group, weights in groups.items()})

    def bars_by_task(self, title: str, style: Style, method: str, measure: Measure = correct) -> Series:
        """Return one bar per task, and one for their average if there are several."""
        tasks = self.tasks([method])
        groups = {task: [task] for task in tasks}
        if len(tasks) > 1:
            groups[AVERAGE] = tasks
        values = {name: self.compare({method: 1}, tasks=group, measure=measure) for name, group in groups.items()}
        return interval_series(title, style, values)

    def line(self, title: str, style: Style, methods: Mapping[float, str]) -> Series:
        """Return one point per method, over the tasks and seeds that all of them have."""
        present = {x: name for x, name in methods.items() if self.has(name)}
        tasks = self.tasks(present.values())
        seeds = _shared_seeds([self.row(name)[task] for name in present.values() for task in tasks])
        values = {x: self.compare({name: 1}, tasks=tasks, seeds=seeds) for x, name in present.items()}
        return interval_series(title, style, values)


def all_seeds(by_seed: Mapping[int | None, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the examples of any seed, each once.

    >>> all_seeds({13: np.array([0, 1]), 21: np.array([1, 2])})
    array([0, 1, 2])
    """
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *by_seed.values()]))


def _runs_among(runs: Iterable[SeedRun], by_seed: Mapping[int | None, NDArray[np.int64]]) -> Iterator[SeedRun]:
    """Yield the runs with their seeds' examples alone; a run that is the same for all seeds is paired with each."""
    for run in runs:
        examples = all_seeds(by_seed) if run.seed is None else by_seed.get(run.seed, by_seed.get(None))
        if examples is not None and len(examples):
            yield run.among(examples)


def _shared_seeds(cells: Iterable[ReportCell]) -> list[int | None]:
    return common_seeds([run.seed for run in cell.runs] for cell in cells)


def _with_seeds(cell: ReportCell, seeds: Sequence[int | None]) -> ReportCell:
    return replace(cell, runs=tuple(run for run in cell.runs if run.seed in seeds or run.seed is None))


def interval_series(
    title: str, style: Style, values: Mapping[str, Interval | None] | Mapping[float, Interval | None]
) -> Series:
    """Return a series of the values that are known."""
    return Series(title, style, tuple(Point(x, value) for x, value in values.items() if value is not None))


@dataclass(frozen=True, eq=False)
class StudyOutcome:
    """The rows of all parts of a study, and the study's folder."""

    results: ResultSet
    folder: Path
    bootstrap: Bootstrap = field(default_factory=Bootstrap)

    @property
    def sections(self) -> list[SectionOutcome]:
        """Return one outcome per inference, named by it, and by template and model where there are several."""
        sections = [section for section in self.results.sections if section.inference != NO_INFERENCE]
        templates, models = {each.template for each in sections}, {each.model for each in sections}
        named = []
        for each in sections:
            parts = [each.inference]
            parts += [f"template {each.template}"] if len(templates) > 1 else []
            parts += [each.model] if len(models) > 1 else []
            named.append(SectionOutcome(", ".join(parts), each, self.results, self.bootstrap))
        return named

    def panels(self, series: Callable[[SectionOutcome], Iterable[Series]]) -> tuple[Panel, ...]:
        """Return one panel per section that has something to show."""
        made = [Panel(each.name, tuple(one for one in series(each) if one.points)) for each in self.sections]
        return tuple(panel for panel in made if panel.series)


def minus(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of a difference.

    >>> minus({"a": 1, "b": -1}, {"b": 1})
    {'a': 1, 'b': -2}
    """
    return {name: first.get(name, 0) - second.get(name, 0) for name in {**first, **second}}


def points(value: Interval | None) -> str:
    """Format a difference with its interval.

    >>> points(Interval(2.04, -1.0, 5.06, 0.2))
    '+2.0 points [-1.0, +5.1]'
    """
    return "not known yet" if value is None else f"{value.estimate:+.1f} points [{value.low:+.1f}, {value.high:+.1f}]"


def percent(value: Interval | None) -> str:
    """Format a percentage with its interval.

    >>> percent(Interval(82.3, 78, 86.52, 0.2))
    '82.3 % [78.0, 86.5]'
    """
    return "not known yet" if value is None else f"{value.estimate:.1f} % [{value.low:.1f}, {value.high:.1f}]"
