"""What ``zicl classify`` wrote, read back: the predictions whose labels are to be checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zicl.exceptions import TextError
from zicl.inputs.output import OutputNote
from zicl.inputs.pair import Text
from zicl.inputs.tables import InputRow, read_rows, row_name

_SHARE = "p:"


@dataclass(frozen=True)
class OutputPrediction:
    """A row of the output. ``choices`` are its own labels and their words, where not every row has all of them."""

    id: str
    text: Text
    predicted: str
    margin: float
    choices: Mapping[str, str] = field(default_factory=dict)


def read_predictions(
    path: Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    pair_column: str | None = None,
    options_column: str | None = None,
) -> tuple[list[OutputPrediction], tuple[str, ...]]:
    """The predictions in an output and the labels, in their order; unnamed columns are those that were classified."""
    written = OutputNote.of(path)
    rows = read_rows(
        str(path),
        text_column=text_column or written.text,
        id_column=id_column or written.id,
        pair_column=pair_column or written.pair,
        options_column=options_column or written.options,
    )
    labels = _labels(rows[0].columns, path)
    counted = written.counted
    if not written.noted:
        # Other words than the labels' names can only be what they count.
        counted = not {option for row in rows for option in row.options} <= set(labels)
    found = []
    for number, row in enumerate(rows, start=1):
        found.append(_prediction(row, labels, row_name(str(path), number), counted=counted))
    return found, labels


def cell(columns: Mapping[str, Any], name: str, where: str) -> Any:
    """A value, or an error that says which columns there are."""
    if name not in columns:
        raise TextError(f"{where}: there is no column {name!r}", hint=f"there are: {', '.join(columns)}")
    return columns[name]


def _labels(columns: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    labels = tuple(name.removeprefix(_SHARE) for name in columns if name.startswith(_SHARE))
    if not labels:
        raise TextError(
            f"{path} has no columns {_SHARE}LABEL", hint="expected a file written by zicl classify --file … -o …"
        )
    return labels


def _prediction(row: InputRow, labels: Sequence[str], where: str, *, counted: bool) -> OutputPrediction:
    choices = _choices(row, labels, counted=counted)
    own = tuple(choices) or tuple(labels)
    if not choices and any(row.columns.get(_SHARE + label) in (None, "") for label in labels):
        raise TextError(
            f"{where}: not all labels have a share, as where a row has labels of its own",
            hint="name the column that holds them: --options-column",
        )
    predicted = str(cell(row.columns, "predicted", where) or "")
    if not predicted:
        # Left to a person (--review-below): what it would have been is what a better margin is found with.
        predicted = max(own, key=lambda label: _number(row.columns, _SHARE + label, where))
    if predicted not in own:
        raise TextError(
            f"{where}: the predicted label {predicted!r} is unknown", hint=f"the row's labels are: {', '.join(own)}"
        )
    return OutputPrediction(row.id, row.text, predicted, _number(row.columns, "margin", where), choices)


def _choices(row: InputRow, labels: Sequence[str], *, counted: bool) -> dict[str, str]:
    """A row's options by label: some of the labels, or the words that the labels count."""
    if counted:
        return dict(zip(labels, row.options, strict=False))
    return {label: label for label in labels if label in row.options}


def _number(columns: Mapping[str, Any], name: str, where: str) -> float:
    value = cell(columns, name, where)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise TextError(f"{where}: {value!r} in column {name!r} is not a number", hint="leave it as zicl wrote it")
    return number
