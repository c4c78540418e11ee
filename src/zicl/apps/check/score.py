"""Estimate accuracy, precision, recall and the confusion matrix of all rows from a labelled sheet."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from zicl.apps.check.sheet import Sheet, SheetRow
from zicl.exceptions import TextError, UsageError

_Z = 1.959963984540054  # 95 %
_MAX_MISTAKES = 5


@dataclass(frozen=True)
class WeightedEstimate:
    """A weighted proportion with a 95 % interval, from ``labelled`` rows that represent about ``rows`` rows."""

    value: float
    low: float
    high: float
    labelled: int
    rows: float


@dataclass(frozen=True)
class LabelQuality:
    """Precision and recall of one label; None without labelled rows to estimate it from."""

    label: str
    precision: WeightedEstimate | None
    recall: WeightedEstimate | None


@dataclass(frozen=True)
class ConfusionCell:
    """One cell of the confusion matrix: the estimated rows of the output, and the labelled rows behind them."""

    gold: str
    predicted: str
    rows: float
    labelled: int


@dataclass(frozen=True)
class Threshold:
    """The smallest margin at or above which rows reach the wanted precision, and the proportion of rows it keeps."""

    margin: float
    precision: WeightedEstimate
    kept: float


@dataclass(frozen=True)
class Mistake:
    """A row whose gold label differs from the predicted one."""

    id: str
    text: str
    predicted: str
    gold: str
    margin: float


@dataclass(frozen=True)
class CheckReport:
    """All estimates. ``empty`` counts sheet rows without a label, ``unspoken`` output rows in strata without one.

    Where texts have several labels, accuracy counts rows with exactly the right ones, and there is no confusion matrix.
    """

    accuracy: WeightedEstimate
    empty: int
    unspoken: float
    labels: tuple[LabelQuality, ...]
    confusion: tuple[ConfusionCell, ...]
    wanted: float
    threshold: Threshold | None
    mistakes: tuple[Mistake, ...]


def score(sheet: Sheet, wanted: float = 0.9) -> CheckReport:
    """Score a sheet; the labelled rows of a stratum also represent its rows without a gold label."""
    if not 0 < wanted <= 1:
        raise UsageError(f"the wanted precision is {wanted}", hint="expected a number above 0 and at most 1, e.g. 0.9")
    rows = _reweight(sheet.rows)
    if not rows:
        raise TextError("no row of the sheet is labelled", hint="fill in its column 'gold'")
    represented = {row.stratum for row in rows}
    return CheckReport(
        estimate_accuracy(rows),
        empty=len(sheet.rows) - len(rows),
        unspoken=math.fsum(row.weight for row in sheet.rows if row.stratum not in represented),
        labels=tuple(_label_quality(label, rows) for label in sheet.labels),
        confusion=()
        if rows[0].prediction.multi
        else tuple(_confusion_cell(gold, label, rows) for gold in sheet.labels for label in sheet.labels),
        wanted=wanted,
        threshold=_find_threshold(rows, wanted),
        mistakes=_most_confident_mistakes(rows),
    )


def _reweight(rows: Sequence[SheetRow]) -> list[SheetRow]:
    """Return the labelled rows, with weights that sum to all rows of their stratum."""
    size: dict[str, float] = defaultdict(float)
    labelled: dict[str, int] = defaultdict(int)
    for row in rows:
        size[row.stratum] += row.weight
        labelled[row.stratum] += bool(row.gold)
    return [replace(row, weight=size[row.stratum] / labelled[row.stratum]) for row in rows if row.gold]


def _correct(row: SheetRow) -> bool:
    return set(row.gold_labels) == set(row.prediction.labels)


def estimate_accuracy(rows: Sequence[SheetRow], correct: Callable[[SheetRow], bool] = _correct) -> WeightedEstimate:
    """Return the weighted proportion of correct predictions.

    The interval is Wilson's, with the effective sample size n* = P(1 - P) / V in place of n, where V is the variance of
    the stratified estimator, the sum of W²p(1 - p)/n over the strata. Within a stratum often all labels are correct, or
    none, and p(1 - p) would be 0; so in P and V (not in the estimate itself) each p is (correct + 1) / (n + 2). With
    one stratum n* is n, and the interval is plain Wilson. There is no finite population correction: the question is how
    the classifier does on texts like these.
    """
    strata: dict[str, list[SheetRow]] = defaultdict(list)
    for row in rows:
        strata[row.stratum].append(row)
    total = math.fsum(row.weight for row in rows)
    value = min(1.0, math.fsum(row.weight for row in rows if correct(row)) / total)
    smoothed, variance = 0.0, 0.0
    for members in strata.values():
        share = math.fsum(row.weight for row in members) / total
        p = (sum(map(correct, members)) + 1) / (len(members) + 2)
        smoothed += share * p
        variance += share**2 * p * (1 - p) / len(members)
    low, high = wilson_interval(value, smoothed * (1 - smoothed) / variance)
    return WeightedEstimate(value, low, high, len(rows), total)


def _find_threshold(rows: Sequence[SheetRow], wanted: float) -> Threshold | None:
    """Return the smallest margin of a labelled row at or above which rows reach the precision; None if none does."""
    total = math.fsum(row.weight for row in rows)
    for margin in sorted({row.prediction.margin for row in rows}):
        precision = estimate_accuracy([row for row in rows if row.prediction.margin >= margin])
        if precision.value >= wanted - 1e-12:
            return Threshold(margin, precision, min(1.0, precision.rows / total))
    return None


def wilson_interval(p: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a proportion observed in ``n`` rows."""
    spread = _Z * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    middle, scale = p + _Z**2 / (2 * n), 1 + _Z**2 / n
    return max(0.0, min(p, (middle - spread) / scale)), min(1.0, max(p, (middle + spread) / scale))


def _label_quality(label: str, rows: Sequence[SheetRow]) -> LabelQuality:
    predicted = [row for row in rows if label in row.prediction.labels]
    precision = estimate_accuracy(predicted, lambda row: label in row.gold_labels) if predicted else None
    return LabelQuality(label, precision, _recall(label, rows))


def _recall(label: str, rows: Sequence[SheetRow]) -> WeightedEstimate | None:
    """Return the weighted proportion of a label's rows that were predicted as it.

    Uncertain are the numbers of its rows among those predicted as the label (the hits) and among all others (the
    misses). The variance is that of the ratio hits / (hits + misses), each proportion smoothed as in
    ``estimate_accuracy``, but once per side: smoothed in every stratum, rare labels would seem to occur everywhere.
    """
    gold = [row for row in rows if label in row.gold_labels]
    if not gold:
        return None
    sides = []
    for hit in (True, False):
        members = [row for row in rows if (label in row.prediction.labels) == hit]
        if members:
            size = math.fsum(row.weight for row in members)
            # The effective sample size (Kish).
            count = size**2 / math.fsum(row.weight**2 for row in members)
            share = math.fsum(row.weight for row in members if label in row.gold_labels) / size
            sides.append((hit, size, count, (count * share + 1) / (count + 2)))
    positives = math.fsum(size * share for _, size, _, share in sides)
    smoothed = math.fsum(size * share for hit, size, _, share in sides if hit) / positives
    variance = math.fsum(
        (size * (hit - smoothed)) ** 2 * share * (1 - share) / count for hit, size, count, share in sides
    ) / (positives**2)
    total = math.fsum(row.weight for row in gold)
    value = min(1.0, math.fsum(row.weight for row in gold if label in row.prediction.labels) / total)
    # With one side only the variance is 0.
    n = smoothed * (1 - smoothed) / variance if variance else float(len(gold))
    low, high = wilson_interval(value, n)
    return WeightedEstimate(value, low, high, len(gold), total)


def _confusion_cell(gold: str, predicted: str, rows: Sequence[SheetRow]) -> ConfusionCell:
    weights = [row.weight for row in rows if (row.gold, row.prediction.predicted) == (gold, predicted)]
    return ConfusionCell(gold, predicted, math.fsum(weights), len(weights))


def _most_confident_mistakes(rows: Sequence[SheetRow]) -> tuple[Mistake, ...]:
    mistakes = [
        Mistake(row.prediction.id, str(row.prediction.text), row.prediction.predicted, row.gold, row.prediction.margin)
        for row in rows
        if not _correct(row)
    ]
    return tuple(sorted(mistakes, key=lambda mistake: (-mistake.margin, mistake.id))[:_MAX_MISTAKES])
