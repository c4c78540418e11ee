"""Order: the position of the nearest demonstrations, and how much random labels and random sentences vary accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from zicl._util.random import rng
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.report.cells import ReportCell, common_seeds
from zicl.lab.report.statistics import DRAWS, Interval, draw_counts
from zicl.lab.study.base import Methods, Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import grid_method, method_style, style_of, variant
from zicl.lab.study.outcome import SectionOutcome, StudyOutcome, interval_series, points

_ORDERS = {"nearest-last": "nearest last", "nearest-first": "nearest first", "shuffled": "shuffled"}
_METHODS = {"naive": "Nearest, original labels", "z-icl": "Z-ICL"}
Floats = NDArray[np.float64]


class OrderOptions(StudyOptions):
    """``draws`` of labels for each draw of sentences, of which there is one per seed."""

    draws: int = Field(3, ge=2)


def _name(method: str, order: str) -> str:
    return method if order == "nearest-last" else f"{method}-{order}"


def _label_draws(options: OrderOptions) -> list[str]:
    return [f"diverse-synonyms-labels-{draw}" for draw in range(1, options.draws + 1)]


def _parts(options: OrderOptions, _: StudySetup) -> list[StudyPart]:
    orders: Methods = {
        _name(method, order): EXPERIMENT_METHODS[method]
        if order == "nearest-last"
        else variant(EXPERIMENT_METHODS[method], title, retrieval={"order": order})
        for method in _METHODS
        for order, title in _ORDERS.items()
    }
    # Diverse nearest, because the other strategies do not choose sentences at random.
    base = grid_method("diverse", "synonyms")
    draws = {
        name: variant(base, f"labels drawn with seed {draw}", labelling={"seed": draw})
        for draw, name in enumerate(_label_draws(options), start=1)
    }
    return [StudyPart("orders", orders), StudyPart("variance", draws)]


def _figures(options: OrderOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def orders(section: SectionOutcome) -> Iterator[Series]:
        for method, title in _METHODS.items():
            groups = {shown: {_name(method, order): 1.0} for order, shown in _ORDERS.items()}
            yield section.bars(title, style_of(method), groups)

    def variance(section: SectionOutcome) -> Iterator[Series]:
        if components := _components(options, section):
            # Both are diverse nearest, and have its colour.
            style = method_style("diverse", "synonyms")
            yield interval_series("draws of labels", style, {"labels": components.labels})
            yield interval_series("draws of sentences", replace(style, hatch="--"), {"sentences": components.sentences})

    deviation = "standard deviation, points"
    return [
        StudyFigure("order", "Where the nearest demonstrations stand", "", ACCURACY, outcome.panels(orders)),
        StudyFigure("variance", "What the draws do to accuracy", "", deviation, outcome.panels(variance)),
    ]


def _components(options: OrderOptions, section: SectionOutcome) -> VarianceComponents | None:
    names = _label_draws(options)
    return variance_components([[section.row(name)[task] for name in names] for task in section.tasks(names)])


def _findings(options: OrderOptions, section: SectionOutcome) -> Iterator[str]:
    each = []
    for method, title in _METHODS.items():
        first = section.compare({_name(method, "nearest-first"): 1, method: -1})
        shuffled = section.compare({_name(method, "shuffled"): 1, method: -1})
        each.append(f"{points(first)} nearest first and {points(shuffled)} shuffled for {title}")
    size = section.size([_name(method, order) for method in _METHODS for order in _ORDERS])
    yield f"against nearest last accuracy is {'; '.join(each)} ({size})."
    components = _components(options, section)
    if components is None:
        yield "what draws of sentences do needs two seeds at least."
        return
    yield (
        f"the standard deviation of accuracy on a task is {_deviation(components.labels)} over draws of labels for the "
        f"same sentences and {_deviation(components.sentences)} over draws of sentences with the same labels; the "
        f"first minus the second is {points(components.difference)} ({options.draws} draws of labels by a draw of "
        f"sentences a seed; {section.size(_label_draws(options))})."
    )


def _deviation(value: Interval) -> str:
    return f"{value.estimate:.1f} points [{value.low:.1f}, {value.high:.1f}]"


class VarianceComponents(NamedTuple):
    """Standard deviations of accuracy in points: over draws of labels, over draws of sentences, and the difference."""

    labels: Interval
    sentences: Interval
    difference: Interval


def variance_components(tasks: Sequence[Sequence[ReportCell]]) -> VarianceComponents | None:
    """Separate the variance over draws of labels and of sentences in a crossed design; None with fewer than two draws.

    Each task has one cell per draw of labels, with one run per draw of sentences. Both are drawn for every text
    independently, so the variance of accuracy is the mean variance of an example, divided by the number of examples.
    The intervals are bootstrapped over examples, each with all its draws.
    """
    tables = [table for cells in tasks if (table := _correct_predictions(cells)) is not None]
    if not tables:
        return None
    # For each example, the variance over draws of labels (averaged over sentences), and the other way round.
    variances = [np.array([np.var(table, axis=axis, ddof=1).mean(axis=0) for axis in (0, 1)]) for table in tables]
    labels, sentences = _deviations([each.mean(axis=1) / each.shape[1] for each in variances])
    label_draws, sentence_draws = _deviations([_resample(each, number) for number, each in enumerate(variances)])
    return VarianceComponents(
        _interval(labels, label_draws),
        _interval(sentences, sentence_draws),
        _interval(labels - sentences, label_draws - sentence_draws),
    )


def _correct_predictions(cells: Sequence[ReportCell]) -> Floats | None:
    """Return 1 for correct predictions and 0 for others, (draws of labels, seeds, examples)."""
    seeds = common_seeds([[run.seed for run in cell.runs] for cell in cells])
    if len(cells) < 2 or len(seeds) < 2:
        return None
    runs = [[next(run for run in cell.runs if run.seed == seed) for seed in seeds] for cell in cells]
    shared = reduce(np.intersect1d, [run.examples for row in runs for run in row])
    correct = [[(run.gold == run.predicted)[np.searchsorted(run.examples, shared)] for run in row] for row in runs]
    return np.array(correct, dtype=np.float64) if len(shared) > 1 else None


def _resample(variances: Floats, number: int) -> Floats:
    """Return the variance of accuracy for resampled examples, (2, resamples)."""
    size = variances.shape[1]
    counts = draw_counts(rng(0, number, "variance"), DRAWS, size)
    return np.asarray(variances @ counts.T / size**2)


def _deviations(variances: Sequence[Floats]) -> Floats:
    """Return standard deviations in points, from the mean variance over tasks."""
    return np.asarray(100 * np.sqrt(np.maximum(np.mean(variances, axis=0), 0)))


def _interval(estimate: float, resampled: Floats) -> Interval:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Interval(float(estimate), min(float(low), float(estimate)), max(float(high), float(estimate)), float("nan"))


STUDY = Study(
    name="order",
    title="The order of demonstrations, and what draws do",
    question="Does it matter where the nearest demonstrations stand, and do draws of labels matter more than draws of "
    "sentences?",
    paper="The paper puts the nearest last and tries no other order; it reports deviations over seeds that draw both.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=OrderOptions,
)
