"""Draw a stratified sample of an output to label by hand, by predicted label and margin, with weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zicl._util.counts import counted
from zicl._util.random import stable_hash
from zicl.apps.check.predictions import OutputPrediction
from zicl.apps.check.sheet import Sheet, SheetRow
from zicl.exceptions import UsageError
from zicl.prompt.labels import NO_LABEL

_MAX_BANDS = 3
_MIN_ROWS_PER_BAND = 2


@dataclass(frozen=True)
class Stratum:
    """Rows with the same predicted label and similar margins."""

    name: str
    rows: tuple[OutputPrediction, ...]


def stratified_sample(
    predictions: Sequence[OutputPrediction], labels: Sequence[str], rows: int = 100, seed: int = 0
) -> Sheet:
    """Return a stratified sample of ``rows`` rows to label, in random order.

    The strata are the predicted labels, cut into thirds by margin (fewer bands if there would be less than two rows for
    each). Every stratum gives equally many rows, as far as it has them. A row's weight is the number of rows it
    represents, so the weights sum to the number of predictions.
    """
    strata = stratify(predictions, seed, rows)
    counts = allocate({stratum.name: len(stratum.rows) for stratum in strata}, rows)
    drawn = []
    for stratum in strata:
        count = counts[stratum.name]
        chosen = sorted(stratum.rows, key=lambda row: stable_hash(seed, row.id, "check"))[:count]
        weight = len(stratum.rows) / count
        drawn += [SheetRow(row, stratum.name, weight) for row in chosen]
    drawn.sort(key=lambda row: stable_hash(seed, row.prediction.id, "order"))
    return Sheet(tuple(labels), tuple(drawn))


def stratify(predictions: Sequence[OutputPrediction], seed: int, rows: int) -> list[Stratum]:
    """Return the strata: per label as many margin bands as ``rows`` can fill with two rows each, at most three."""
    by_label: dict[str, list[OutputPrediction]] = defaultdict(list)
    # Margins of 1.0 are common: a hash breaks ties, not the order of the file.
    for row in sorted(predictions, key=lambda row: (row.margin, stable_hash(seed, row.id, "band"))):
        # Of several labels the first: sets of labels would be too many strata.
        by_label[next(iter(row.labels), NO_LABEL)].append(row)
    if rows < len(by_label):
        raise UsageError(
            f"{counted(rows, 'row')} cannot represent {len(by_label)} predicted labels", hint="raise --rows"
        )
    bands = max(1, min(_MAX_BANDS, rows // (_MIN_ROWS_PER_BAND * len(by_label))))
    strata = []
    for label in sorted(by_label):
        members: dict[int, list[OutputPrediction]] = defaultdict(list)
        for rank, row in enumerate(by_label[label]):
            members[rank * bands // len(by_label[label])].append(row)
        strata += [
            Stratum(f"{label} {band + 1}/{bands}", tuple(band_rows)) for band, band_rows in sorted(members.items())
        ]
    return strata


def allocate(sizes: Mapping[str, int], rows: int) -> dict[str, int]:
    """Divide ``rows`` equally, none above its size; the remainder goes to the others, the largest first.

    >>> allocate({"a": 2, "b": 50, "c": 60}, 11)
    {'a': 2, 'b': 4, 'c': 5}
    """
    given = dict.fromkeys(sizes, 0)
    left = min(rows, sum(sizes.values()))
    while left:
        unfilled = sorted((name for name in sizes if given[name] < sizes[name]), key=lambda name: -sizes[name])
        share = max(1, left // len(unfilled))
        for name in unfilled:
            more = min(share, sizes[name] - given[name], left)
            given[name] += more
            left -= more
    return given
