"""The results that a report is about, as cells: one method on one task, seed by seed. Scores are in per cent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.score.calibration import Scores

Ints = NDArray[np.int64]
Metric = Literal["accuracy", "macro-f1"]


class ReportSection(NamedTuple):
    """What the methods in one section of a table have in common."""

    model: str
    template: str
    inference: str


class CellKey(NamedTuple):
    """The section, method and task of a cell."""

    model: str
    template: str
    inference: str
    method: str
    task: str

    @property
    def section(self) -> ReportSection:
        """The section of the table that the cell is in."""
        return ReportSection(self.model, self.template, self.inference)


@dataclass(frozen=True)
class ReportTask:
    """A task as the manifests describe it."""

    name: str
    labels: tuple[str, ...]
    covered: bool | None = None
    note: str = ""
    examples: int = 0
    # Its labels only number the options, which are different words for every text.
    counted: bool = False


@dataclass(frozen=True)
class MethodTraits:
    """What a report says about a method.

    ``labelled`` methods see labelled data, ``control`` methods are simple baselines without a language model. ``sort``
    is the kind in the method's configuration: "prompt", "majority", or which control. The scores of ``batch`` methods
    are batch-calibrated; ``pile`` methods learned from all texts of a task.
    """

    title: str
    labelled: bool = False
    control: bool = False
    sort: str = "prompt"
    batch: bool = False
    pile: bool = False


@dataclass(frozen=True, eq=False)
class SeedRun:
    """The rows of one seed, sorted by example. Classes are positions among the task's labels.

    ``nearest`` and ``last`` are the classes shown with these demonstrations, -1 if there is none. ``scores``, (rows,
    labels), are the values that were compared; ``terms``, (terms, rows, labels), are those they were joined from.
    """

    seed: int | None
    examples: Ints
    gold: Ints
    predicted: Ints
    nearest: Ints
    last: Ints
    terms: Scores
    scores: Scores
    # The class shown with the input itself, where the input is one of the demonstrations.
    identical: Ints | None = None
    # The number of demonstrations, and of those that fit into the prompt.
    retrieved: Ints | None = None
    kept: Ints | None = None
    # The similarity of the nearest demonstration; not a number where there is none.
    similarity: NDArray[np.float64] | None = None

    def among(self, examples: Ints) -> SeedRun:
        """Return the rows of these examples."""
        rows = np.isin(self.examples, examples)
        changes: dict[str, Any] = {
            field.name: value[..., rows, :] if field.name in ("terms", "scores") else value[rows]
            for field in fields(self)
            if field.name != "seed" and (value := getattr(self, field.name)) is not None
        }
        return replace(self, **changes)

    def score(self, metric: Metric) -> float:
        """Return accuracy or macro-F1."""
        if metric == "accuracy":
            return 100 * float((self.gold == self.predicted).mean())
        return 100 * macro_f1(self.gold, self.predicted)


def macro_f1(gold: Ints, predicted: Ints) -> float:
    """Return the mean F1 of the classes that occur.

    >>> round(macro_f1(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])), 4)
    0.7333
    """
    scores = []
    for label in np.unique(np.concatenate([gold, predicted[predicted >= 0]])):
        correct = int(((gold == label) & (predicted == label)).sum())
        scores.append(2 * correct / int((gold == label).sum() + (predicted == label).sum()))
    return float(np.mean(scores))


@dataclass(frozen=True, eq=False)
class ReportCell:
    """One method on one task: its runs, and the number of rows that are expected of all of them."""

    key: CellKey
    kind: MethodTraits
    labels: tuple[str, ...]
    runs: tuple[SeedRun, ...] = ()
    expected: int = 0

    @property
    def present(self) -> int:
        """The number of rows."""
        return sum(len(run.examples) for run in self.runs)

    @property
    def missing(self) -> int:
        """The number of rows that are still to be computed."""
        return max(0, self.expected - self.present)

    @property
    def same_options(self) -> bool:
        """Whether every text has all labels to choose from."""
        return all(bool(np.isfinite(run.terms).all()) for run in self.runs)

    def scores(self, metric: Metric) -> dict[int | None, float]:
        """Return the score of every seed; None is the seed of a deterministic method."""
        return {run.seed: run.score(metric) for run in self.runs}

    @property
    def shares(self) -> dict[str, float]:
        """How often each label is predicted."""
        predicted = np.concatenate([run.predicted for run in self.runs]) if self.runs else np.zeros(0, np.int64)
        if not len(predicted):
            return {}
        return {label: 100 * float((predicted == number).mean()) for number, label in enumerate(self.labels)}

    @property
    def copied_nearest(self) -> float | None:
        """How often the prediction is the class of the nearest demonstration."""
        return _copy_rate([(run.predicted, run.nearest) for run in self.runs])

    @property
    def copied_last(self) -> float | None:
        """How often the prediction is the class of the last demonstration."""
        return _copy_rate([(run.predicted, run.last) for run in self.runs])

    @property
    def demonstrations(self) -> tuple[float, float] | None:
        """The mean number of demonstrations in a prompt, and of those retrieved for it."""
        runs = [(run.kept, run.retrieved) for run in self.runs if run.kept is not None and run.retrieved is not None]
        if not runs:
            return None
        kept, retrieved = (float(np.concatenate(counts).mean()) for counts in zip(*runs, strict=True))
        return kept, retrieved


def _copy_rate(runs: Sequence[tuple[Ints, Ints]]) -> float | None:
    """Return how often predictions are the class of a demonstration, where there is one."""
    copied = np.concatenate([np.zeros(0, bool), *((predicted == demo)[demo >= 0] for predicted, demo in runs)])
    return 100 * float(copied.mean()) if len(copied) else None


def common_seeds(seeds: Iterable[Iterable[int | None]]) -> list[int | None]:
    """Return the seeds that all have; a deterministic method (None) counts as every seed.

    >>> common_seeds([[13, 21], [None], [21, 13, 42]])
    [13, 21]
    >>> common_seeds([[None], [None]])
    [None]
    """
    sets = [set(each) for each in seeds]
    named = sorted(seed for seed in set().union(*sets) if seed is not None)
    shared: list[int | None] = [seed for seed in named if all(seed in each or None in each for each in sets)]
    return shared or ([None] if sets and all(None in each for each in sets) else [])


def mean_and_deviation(cells: Sequence[ReportCell], metric: Metric) -> tuple[float | None, float | None]:
    """Return the mean over tasks and seeds, and the sample standard deviation of the seeds' means over tasks."""
    scores = [cell.scores(metric) for cell in cells]
    if not scores or not all(scores):
        return None, None
    seeds = common_seeds(scores)
    if not seeds:
        return float(np.mean([np.mean(list(by_seed.values())) for by_seed in scores])), None
    means = [float(np.mean([by_seed.get(seed, by_seed.get(None)) for by_seed in scores])) for seed in seeds]
    return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else None


@dataclass(frozen=True, eq=False)
class ResultSet:
    """All cells of one or several results folders; runs number the examples by their position in ``examples``."""

    models: tuple[str, ...]
    tasks: dict[str, ReportTask]
    cells: dict[CellKey, ReportCell]
    notes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def sections(self) -> list[ReportSection]:
        """The sections of a table: model by model, methods without a prompt first, channel before direct."""
        order = [NO_INFERENCE, "channel", "direct"]

        def rank(section: ReportSection) -> tuple[int, int, str, bool, str]:
            inference = order.index(section.inference) if section.inference in order else len(order)
            # "task" before "none": the paper's tables have templates.
            later = section.template != "task"
            return self.models.index(section.model), inference, section.inference, later, section.template

        return sorted({key.section for key in self.cells}, key=rank)

    def row(self, section: ReportSection, method: str) -> dict[str, ReportCell]:
        """Return the cells of a method in a section, by task, in the order of the tasks."""
        keys = [CellKey(*section, method, task) for task in self.tasks]
        return {key.task: self.cells[key] for key in keys if key in self.cells}

    def methods(self, section: ReportSection) -> dict[str, MethodTraits]:
        """Return the methods of a section; one that is calibrated on some of its tasks counts as calibrated."""
        traits = [(key.method, cell.kind) for key, cell in self.cells.items() if key.section == section]
        return {**dict(traits), **{method: each for method, each in traits if each.batch}}

    def without_prompt(self, section: ReportSection) -> dict[str, tuple[MethodTraits, dict[str, ReportCell]]]:
        """Return the methods that need no prompt (majority, controls) to compare a section with, each once."""
        others = [each for each in self.sections if each.model == section.model and each.inference == NO_INFERENCE]
        others.sort(key=lambda each: each.template != section.template)
        rows: dict[str, tuple[MethodTraits, dict[str, ReportCell]]] = {}
        for other in others:
            for method, traits in self.methods(other).items():
                rows.setdefault(method, (traits, self.row(other, method)))
        return rows

    @property
    def guessing(self) -> dict[str, tuple[float, int]]:
        """The accuracy in per cent of guessing each label as often as it occurs, and the number of examples."""
        gold: dict[str, dict[int, int]] = {task: {} for task in self.tasks}
        for key, cell in self.cells.items():
            for run in cell.runs:
                gold[key.task].update(zip(run.examples.tolist(), run.gold.tolist(), strict=True))
        counts = {task: np.bincount(list(labels.values())) for task, labels in gold.items() if labels}
        shares = {task: count / count.sum() for task, count in counts.items()}
        return {task: (100 * float(shares[task] @ shares[task]), int(count.sum())) for task, count in counts.items()}

    @property
    def missing(self) -> int:
        """The number of rows that are still to be computed."""
        return sum(cell.missing for cell in self.cells.values())
