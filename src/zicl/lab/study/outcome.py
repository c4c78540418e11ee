"""What the rows of a study say: numbers with intervals, and these in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
AVERAGE = "average"


def copy_rate(run: SeedRun) -> NDArray[np.bool_]:
    """Which predictions are the label beside the input itself."""
    assert run.identical is not None
    return np.asarray(run.predicted == run.identical)


@dataclass(frozen=True, eq=False)
class StudyOutcome:
    """The rows of all parts of a study, in its folder."""

    results: ResultSet
    folder: Path
    bootstrap: Bootstrap = field(default_factory=Bootstrap)

    @property
    def blocks(self) -> list[ReportSection]:
        """The inferences (and templates) there are; each is a panel of a figure, and has findings of its own."""
        return [block for block in self.results.blocks if block.inference != NO_INFERENCE]

    def name(self, block: ReportSection) -> str:
        """A block by what tells it from the others: its inference, and template and model where there are several."""
        templates, models = ({getattr(each, what) for each in self.blocks} for what in ("template", "model"))
        more = [f"template {block.template}"] * (len(templates) > 1) + [block.model] * (len(models) > 1)
        return ", ".join([block.inference, *more])

    def has(self, block: ReportSection, *methods: str) -> bool:
        """Whether there are rows of all these methods."""
        return all(any(cell.runs for cell in self.results.row(block, name).values()) for name in methods)

    def tasks(self, block: ReportSection, methods: Sequence[str]) -> list[str]:
        """The tasks on which all these methods have rows."""
        rows = [self.results.row(block, name) for name in methods]
        return [task for task in self.results.tasks if all(task in row and row[task].runs for row in rows)]

    def compare(
        self, block: ReportSection, weights: Mapping[str, float], *, task: str | None = None, measure: Measure = correct
    ) -> Interval | None:
        """A weighted sum of methods, in percentage points, on one task or averaged over all; paired."""
        pairs = []
        for name in [task] if task else self.tasks(block, list(weights)):
            cells = {method: self.results.row(block, method).get(name) for method in weights}
            terms = [Term(weights[method], cell, measure) for method, cell in cells.items() if cell is not None]
            found = contrast(terms) if len(terms) == len(weights) else None
            if found is not None:
                pairs.append(found)
        return self.bootstrap.compare(pairs) if pairs else None

    def size(self, block: ReportSection, methods: Sequence[str]) -> str:
        """How much a comparison of methods rests on, in words."""
        tasks = self.tasks(block, methods)
        cells = [self.results.row(block, method)[task] for method in methods for task in tasks]
        if not cells:
            return "no rows yet"
        seeds = len(common_seeds([[run.seed for run in cell.runs] for cell in cells]))
        counts = sorted({len(run.examples) for cell in cells for run in cell.runs})
        examples = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        return f"{', '.join(tasks)}; {examples} examples a task, {seeds} seed{'s' if seeds != 1 else ''}"

    def differences(
        self, block: ReportSection, title: str, look: Style, groups: Mapping[str, Mapping[str, float]]
    ) -> Series:
        """A bar for each weighted sum of methods, the mean over tasks."""
        found = {group: self.compare(block, weights) for group, weights in groups.items()}
        return Series(title, look, tuple(Point(at, value) for at, value in found.items() if value is not None))

    def bars(self, block: ReportSection, title: str, look: Style, groups: Mapping[str, str]) -> Series:
        """A bar for each group, the mean over tasks of a method."""
        return self.differences(block, title, look, {group: {method: 1.0} for group, method in groups.items()})

    def by_task(self, block: ReportSection, title: str, look: Style, method: str, measure: Measure = correct) -> Series:
        """A bar for each task, and for their average if there are several."""
        tasks: list[str | None] = [*self.tasks(block, [method])]
        if len(tasks) > 1:
            tasks.append(None)
        values = [(task or AVERAGE, self.compare(block, {method: 1}, task=task, measure=measure)) for task in tasks]
        return Series(title, look, tuple(Point(at, value) for at, value in values if value is not None))

    def line(self, block: ReportSection, title: str, look: Style, methods: Mapping[float, str]) -> Series:
        """A point for each method, over the tasks and seeds that all of them have."""
        there = {x: name for x, name in methods.items() if self.has(block, name)}
        tasks = self.tasks(block, list(there.values()))
        rows = {x: [self.results.row(block, name)[task] for task in tasks] for x, name in there.items()}
        seeds = common_seeds([run.seed for run in cell.runs] for cells in rows.values() for cell in cells)
        points = []
        for x, cells in rows.items():
            pairs = [contrast([Term(1, _only(cell, seeds))]) for cell in cells]
            known = [each for each in pairs if each is not None]
            if known:
                points.append(Point(x, self.bootstrap.compare(known)))
        return Series(title, look, tuple(points))

    def panels(self, series: Callable[[ReportSection], Sequence[Series]]) -> tuple[Panel, ...]:
        """A panel for each inference that has something to show."""
        made = [(block, tuple(each for each in series(block) if each.points)) for block in self.blocks]
        return tuple(Panel(self.name(block), found) for block, found in made if found)


def _only(cell: ReportCell, seeds: Sequence[int | None]) -> ReportCell:
    return replace(cell, runs=tuple(run for run in cell.runs if run.seed in seeds or run.seed is None))


def minus(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """The weights of a difference.

    >>> minus({"a": 1, "b": -1}, {"b": 1})
    {'a': 1, 'b': -2}
    """
    return {name: first.get(name, 0) - second.get(name, 0) for name in {**first, **second}}


def points(value: Interval | None) -> str:
    """A difference with its interval.

    >>> points(Interval(2.04, -1.0, 5.06, 0.2))
    '+2.0 points [-1.0, +5.1]'
    """
    return "not known yet" if value is None else f"{value.estimate:+.1f} points [{value.low:+.1f}, {value.high:+.1f}]"


def per_cent(value: Interval | None) -> str:
    """A share with its interval.

    >>> per_cent(Interval(82.3, 78, 86.52, 0.2))
    '82.3 % [78.0, 86.5]'
    """
    return "not known yet" if value is None else f"{value.estimate:.1f} % [{value.low:.1f}, {value.high:.1f}]"
