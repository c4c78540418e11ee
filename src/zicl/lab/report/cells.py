"""The class shown with the nearest, and with the last, demonstration in the prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.score.calibration import Scores

Ints = NDArray[np.int64]


class RaggedArray(NamedTuple):
    """A column of lists: how long each is, and all their values one after the other."""

    lengths: Ints
    values: NDArray[Any]

    @property
    def ends(self) -> Ints:
        """Where each list ends among the values."""
        return np.cumsum(self.lengths)


def last_label(labels: RaggedArray, kept: Ints) -> Ints:
    """The class of the last demonstration, -1 where there is none.

    >>> last_label(RaggedArray(np.array([2, 1, 0]), np.array([1, 0, 1])), np.array([2, 1, 0]))
    array([ 0,  1, -1])
    """
    shown = np.minimum(labels.lengths, kept) > 0
    return _classes(labels, np.where(shown, labels.ends - 1, -1))


def nearest_label(labels: RaggedArray, similarities: RaggedArray, kept: Ints) -> Ints:
    """The same for the most similar of the kept demonstrations, which are the last ``kept`` of each list.

    >>> labels = RaggedArray(np.array([3]), np.array([1, 0, 1]))
    >>> nearest_label(labels, RaggedArray(np.array([3]), np.array([0.9, 0.8, 0.7])), np.array([2]))
    array([0])
    """
    shown = (np.minimum(labels.lengths, kept) > 0) & (similarities.lengths == labels.lengths)
    at = np.full(len(kept), -1, dtype=np.int64)
    if not shown.any():
        return at
    # All kept demonstrations of all rows in one line; the start of each row's piece cuts it for reduceat.
    count = np.minimum(labels.lengths, kept)[shown]
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    back = np.repeat(count, count) - (np.arange(count.sum()) - np.repeat(starts, count))
    score = similarities.values[np.repeat(similarities.ends[shown], count) - back]
    best = np.repeat(np.maximum.reduceat(score, starts), count)
    # Of equally near ones the later, which stands closer to the input.
    position = np.repeat(labels.ends[shown], count) - back
    at[shown] = np.maximum.reduceat(np.where(score == best, position, -1), starts)
    return _classes(labels, at)


def _classes(labels: RaggedArray, at: Ints) -> Ints:
    out = np.full(len(at), -1, dtype=np.int64)
    out[at >= 0] = labels.values[at[at >= 0]]
    return out


# -- From results folders to cells: what one method did on one task, seed by seed. Everything is in per cent.


Metric = Literal["accuracy", "macro-f1"]


class ReportSection(NamedTuple):
    """What the methods of one part of the table have in common."""

    model: str
    template: str
    inference: str


class CellKey(NamedTuple):
    """Which cell."""

    model: str
    template: str
    inference: str
    method: str
    task: str

    @property
    def block(self) -> ReportSection:
        """The part of the table it stands in."""
        return ReportSection(self.model, self.template, self.inference)


@dataclass(frozen=True)
class ReportTask:
    """A task as the manifests describe it."""

    name: str
    labels: tuple[str, ...]
    covered: bool | None = None
    note: str = ""
    examples: int = 0
    # Its labels only number options that are other words for every text.
    counted: bool = False


@dataclass(frozen=True)
class MethodTraits:
    """What sort of method: ``labelled`` ones see labelled data, ``control`` ones are simple rivals.

    ``sort`` is what its configuration calls its kind: a prompt, the majority, or which control. The scores of
    ``batch`` ones are less what a label gets on average over the texts of a run.
    """

    title: str
    labelled: bool = False
    control: bool = False
    sort: str = "prompt"
    batch: bool = False


@dataclass(frozen=True, eq=False)
class SeedRun:
    """What one seed gave, a row for each example: its number, sorted; classes are positions among the labels.

    ``nearest`` and ``last`` are the classes shown with these demonstrations, -1 where there is none. ``scores`` are
    what was compared, (rows, labels); ``terms`` what they were joined from, (terms, rows, labels), nothing taken off.
    """

    seed: int | None
    examples: Ints
    gold: Ints
    predicted: Ints
    nearest: Ints
    last: Ints
    terms: Scores
    scores: Scores
    # The class beside the input, where that stands among its own demonstrations.
    identical: Ints | None = None
    # How many demonstrations were found, and how many of these had room in the prompt.
    found: Ints | None = None
    kept: Ints | None = None

    def score(self, metric: Metric) -> float:
        """Accuracy or macro-F1."""
        if metric == "accuracy":
            return 100 * float((self.gold == self.predicted).mean())
        return 100 * macro_f1(self.gold, self.predicted)


def macro_f1(gold: Ints, predicted: Ints) -> float:
    """The F1 of the classes that occur, averaged.

    >>> round(macro_f1(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])), 4)
    0.7333
    """
    scores = []
    for label in np.unique(np.concatenate([gold, predicted[predicted >= 0]])):
        right = int(((gold == label) & (predicted == label)).sum())
        scores.append(2 * right / int((gold == label).sum() + (predicted == label).sum()))
    return float(np.mean(scores))


@dataclass(frozen=True, eq=False)
class ReportCell:
    """One method on one task: its runs, and how many rows all of them should have."""

    key: CellKey
    kind: MethodTraits
    labels: tuple[str, ...]
    runs: tuple[SeedRun, ...] = ()
    expected: int = 0

    @property
    def present(self) -> int:
        """How many rows there are."""
        return sum(len(run.examples) for run in self.runs)

    @property
    def missing(self) -> int:
        """How many rows are still to come."""
        return max(0, self.expected - self.present)

    @property
    def same_options(self) -> bool:
        """Whether every text has all labels to choose from."""
        return all(bool(np.isfinite(run.terms).all()) for run in self.runs)

    def scores(self, metric: Metric) -> dict[int | None, float]:
        """The score of every seed; None is the seed of a method with nothing random in it."""
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
        return _rate([(run.predicted, run.nearest) for run in self.runs])

    @property
    def room(self) -> tuple[float, float] | None:
        """How many demonstrations a prompt has on average, and how many were found for it."""
        runs = [(run.kept, run.found) for run in self.runs if run.kept is not None and run.found is not None]
        if not runs:
            return None
        kept, found = (float(np.concatenate(each).mean()) for each in zip(*runs, strict=True))
        return kept, found

    @property
    def copied_identical(self) -> float | None:
        """How often the prediction is the class shown with the input itself, where that is a demonstration."""
        return _rate([(run.predicted, run.identical) for run in self.runs if run.identical is not None])

    @property
    def copied_last(self) -> float | None:
        """How often the prediction is the class of the last demonstration."""
        return _rate([(run.predicted, run.last) for run in self.runs])


def _rate(runs: Sequence[tuple[Ints, Ints]]) -> float | None:
    """How often the first is the second, where there is a second."""
    known = np.concatenate([np.zeros(0, bool), *((said == shown)[shown >= 0] for said, shown in runs)])
    return 100 * float(known.mean()) if len(known) else None


def common_seeds(seeds: Iterable[Iterable[int | None]]) -> list[int | None]:
    """The seeds that all have; one without seeds (None) counts as every seed.

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
    """The mean over tasks and seeds, and the sample standard deviation of the seeds' means over tasks."""
    scores = [cell.scores(metric) for cell in cells]
    if not scores or not all(scores):
        return None, None
    seeds = common_seeds(scores)
    if not seeds:
        return float(np.mean([np.mean(list(each.values())) for each in scores])), None
    means = [float(np.mean([each.get(seed, each.get(None)) for each in scores])) for seed in seeds]
    return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else None


@dataclass(frozen=True, eq=False)
class ResultSet:
    """All cells of one or several results folders; runs number the examples by their place in ``examples``."""

    models: tuple[str, ...]
    tasks: dict[str, ReportTask]
    cells: dict[CellKey, ReportCell]
    notes: tuple[str, ...] = field(default=())
    examples: tuple[str, ...] = ()

    @property
    def blocks(self) -> list[ReportSection]:
        """The parts of the table: model by model, methods without a prompt first, channel before direct."""
        order = [NO_INFERENCE, "channel", "direct"]
        found = {key.block for key in self.cells}

        def rank(block: ReportSection) -> tuple[int, int, str, bool, str]:
            inference = order.index(block.inference) if block.inference in order else len(order)
            # "task" before "none": the paper's tables have templates.
            later = block.template != "task"
            return self.models.index(block.model), inference, block.inference, later, block.template

        return sorted(found, key=rank)

    def row(self, block: ReportSection, method: str) -> dict[str, ReportCell]:
        """The cells of a method in a block, by task, in the order of the tasks."""
        keys = [CellKey(*block, method, task) for task in self.tasks]
        return {key.task: self.cells[key] for key in keys if key in self.cells}

    def methods(self, block: ReportSection) -> dict[str, MethodTraits]:
        """The methods of a block; one that is calibrated on some of its tasks counts as calibrated."""
        own = [(key.method, cell.kind) for key, cell in self.cells.items() if key.block == block]
        return {**dict(own), **{method: kind for method, kind in own if kind.batch}}

    def beside(self, block: ReportSection) -> list[tuple[MethodTraits, dict[str, ReportCell]]]:
        """The methods without a prompt (majority, controls) that stand beside a block, each once."""
        own = [b for b in self.blocks if b.model == block.model and b.inference == NO_INFERENCE]
        own.sort(key=lambda b: b.template != block.template)
        found: dict[str, tuple[MethodTraits, dict[str, ReportCell]]] = {}
        for other in own:
            for method, kind in self.methods(other).items():
                found.setdefault(method, (kind, self.row(other, method)))
        return [found[method] for method in found]

    @property
    def majorities(self) -> dict[str, tuple[float, int]]:
        """The share of each task's most frequent label in per cent, and of how many examples."""
        gold: dict[str, dict[int, int]] = {task: {} for task in self.tasks}
        for key, cell in self.cells.items():
            for run in cell.runs:
                gold[key.task].update(zip(run.examples.tolist(), run.gold.tolist(), strict=True))
        counts = {task: np.bincount(list(found.values())) for task, found in gold.items() if found}
        return {task: (100 * float(count.max() / count.sum()), int(count.sum())) for task, count in counts.items()}

    @property
    def missing(self) -> int:
        """How many rows are still to come."""
        return sum(cell.missing for cell in self.cells.values())
