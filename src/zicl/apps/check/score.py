"""What a labelled sheet says about all rows: accuracy, precision and recall, and where they are lost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from zicl.apps.check.sheet import Sheet, SheetRow
from zicl.exceptions import TextError, UsageError

_Z = 1.959963984540054  # 95 %
_MISTAKES = 5


@dataclass(frozen=True)
class WeightedEstimate:
    """A weighted share with a 95 % interval; ``labelled`` rows speak for about ``rows`` rows of the output."""

    value: float
    low: float
    high: float
    labelled: int
    rows: float


@dataclass(frozen=True)
class LabelQuality:
    """How one label does; None where no labelled row says anything."""

    label: str
    precision: WeightedEstimate | None
    recall: WeightedEstimate | None


@dataclass(frozen=True)
class ConfusionCell:
    """One cell of the confusion matrix: rows it stands for, and rows labelled."""

    gold: str
    predicted: str
    rows: float
    labelled: int


@dataclass(frozen=True)
class Threshold:
    """The smallest margin from which on the wanted precision holds, and the share of all rows it keeps."""

    margin: float
    precision: WeightedEstimate
    kept: float


@dataclass(frozen=True)
class Mistake:
    """A row that was labelled otherwise by hand."""

    id: str
    text: str
    predicted: str
    gold: str
    margin: float


@dataclass(frozen=True)
class CheckReport:
    """All a labelled sheet says. ``unspoken`` are rows in strata of which none was labelled."""

    accuracy: WeightedEstimate
    empty: int
    unspoken: float
    labels: tuple[LabelQuality, ...]
    confusion: tuple[ConfusionCell, ...]
    wanted: float
    threshold: Threshold | None
    mistakes: tuple[Mistake, ...]


def score(sheet: Sheet, wanted: float = 0.9) -> CheckReport:
    """Score a sheet; rows without a gold label are left out and the others of their stratum stand for them."""
    if not 0 < wanted <= 1:
        raise UsageError(f"a precision of {wanted} was asked for", hint="give one above 0 and at most 1, e.g. 0.9")
    rows = reweighted(sheet.rows)
    if not rows:
        raise TextError("no row of the sheet is labelled", hint="fill in its column 'gold'")
    heard = {row.stratum for row in rows}
    return CheckReport(
        estimate(rows),
        empty=len(sheet.rows) - len(rows),
        unspoken=math.fsum(row.weight for row in sheet.rows if row.stratum not in heard),
        labels=tuple(_label_score(label, rows) for label in sheet.labels),
        confusion=tuple(_cell(gold, predicted, rows) for gold in sheet.labels for predicted in sheet.labels),
        wanted=wanted,
        threshold=threshold(rows, wanted),
        mistakes=_mistakes(rows),
    )


def reweighted(rows: Sequence[SheetRow]) -> list[SheetRow]:
    """The labelled rows; together they stand for all rows of their stratum."""
    size: dict[str, float] = defaultdict(float)
    labelled: dict[str, int] = defaultdict(int)
    for row in rows:
        size[row.stratum] += row.weight
        labelled[row.stratum] += bool(row.gold)
    return [replace(row, weight=size[row.stratum] / labelled[row.stratum]) for row in rows if row.gold]


def estimate(rows: Sequence[SheetRow]) -> WeightedEstimate:
    """The weighted share of right predictions.

    The interval is Wilson's, with the effective number of rows n* = P(1 - P) / V in place of n, where V is the
    variance of the stratified estimator, the sum of W²p(1 - p)/n over the strata. Labels are often all right
    or all wrong within a stratum, and p(1 - p) would call that certain from two rows on; so in P and V (not in the
    estimate itself) each p is (right + 1) / (n + 2). With one stratum n* is n, and the interval plain Wilson.
    There is no correction for a finite file: the question is how the classifier does on texts like these.
    """
    strata: dict[str, list[SheetRow]] = defaultdict(list)
    for row in rows:
        strata[row.stratum].append(row)
    total = math.fsum(row.weight for row in rows)
    value = min(1.0, math.fsum(row.weight for row in rows if _right(row)) / total)
    smooth, variance = 0.0, 0.0
    for members in strata.values():
        share = math.fsum(row.weight for row in members) / total
        p = (sum(map(_right, members)) + 1) / (len(members) + 2)
        smooth += share * p
        variance += share**2 * p * (1 - p) / len(members)
    low, high = wilson(value, smooth * (1 - smooth) / variance)
    return WeightedEstimate(value, low, high, len(rows), total)


def threshold(rows: Sequence[SheetRow], wanted: float) -> Threshold | None:
    """The smallest margin of a labelled row such that all rows from it on reach the precision; None if none does."""
    total = math.fsum(row.weight for row in rows)
    for margin in sorted({row.prediction.margin for row in rows}):
        found = estimate([row for row in rows if row.prediction.margin >= margin])
        if found.value >= wanted - 1e-12:
            return Threshold(margin, found, min(1.0, found.rows / total))
    return None


def wilson(p: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share seen in ``n`` rows."""
    spread = _Z * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    middle, scale = p + _Z**2 / (2 * n), 1 + _Z**2 / n
    return max(0.0, min(p, (middle - spread) / scale)), min(1.0, max(p, (middle + spread) / scale))


def _right(row: SheetRow) -> bool:
    return row.gold == row.prediction.predicted


def _label_score(label: str, rows: Sequence[SheetRow]) -> LabelQuality:
    predicted = [row for row in rows if row.prediction.predicted == label]
    return LabelQuality(label, estimate(predicted) if predicted else None, _recall(label, rows))


def _recall(label: str, rows: Sequence[SheetRow]) -> WeightedEstimate | None:
    """The weighted share of a label's rows that got it.

    Rows that were predicted the label are right if they are of it, all others wrong; what is not certain is how many
    of it there are on either side. The variance is that of a ratio of two such sums, each side's share smoothed as in
    ``estimate``: once for the side, for smoothed in every stratum many labels would seem to hide everywhere.
    """
    gold = [row for row in rows if row.gold == label]
    if not gold:
        return None
    sides = []
    for hit in (True, False):
        members = [row for row in rows if (row.prediction.predicted == label) == hit]
        if members:
            size = math.fsum(row.weight for row in members)
            # As many rows of equal weight would say as much.
            count = size**2 / math.fsum(row.weight**2 for row in members)
            of_it = math.fsum(row.weight for row in members if row.gold == label) / size
            sides.append((hit, size, count, (count * of_it + 1) / (count + 2)))
    there = math.fsum(size * share for _, size, _, share in sides)
    smooth = math.fsum(size * share for hit, size, _, share in sides if hit) / there
    variance = math.fsum(
        (size * (hit - smooth)) ** 2 * share * (1 - share) / count for hit, size, count, share in sides
    ) / (there**2)
    total = math.fsum(row.weight for row in gold)
    value = min(1.0, math.fsum(row.weight for row in gold if _right(row)) / total)
    # One side only: nothing is left to vary but the number of its rows.
    n = smooth * (1 - smooth) / variance if variance else float(len(gold))
    low, high = wilson(value, n)
    return WeightedEstimate(value, low, high, len(gold), total)


def _cell(gold: str, predicted: str, rows: Sequence[SheetRow]) -> ConfusionCell:
    found = [row.weight for row in rows if (row.gold, row.prediction.predicted) == (gold, predicted)]
    return ConfusionCell(gold, predicted, math.fsum(found), len(found))


def _mistakes(rows: Sequence[SheetRow]) -> tuple[Mistake, ...]:
    wrong = sorted(
        (row for row in rows if not _right(row)), key=lambda row: (-row.prediction.margin, row.prediction.id)
    )
    return tuple(
        Mistake(one.prediction.id, str(one.prediction.text), one.prediction.predicted, one.gold, one.prediction.margin)
        for one in wrong[:_MISTAKES]
    )
