"""Read the predictions that ``zicl classify`` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zicl.config import Decision, parse_group
from zicl.exceptions import TextError
from zicl.inputs.files import no_column
from zicl.inputs.output import OutputMetadata, metadata_path
from zicl.inputs.pair import Text
from zicl.inputs.tables import InputRow, read_number, read_rows, row_name
from zicl.inputs.texts import cell_text
from zicl.prompt.labels import SEPARATOR, split_labels

_PROBABILITY = "p:"
_ALL_COLUMNS = "label the texts again with zicl classify --columns all, or name predicted, margin and p"


@dataclass(frozen=True)
class OutputPrediction:
    """A row of the output. ``choices`` maps its labels to their words, if they differ from row to row.

    With ``multi``, ``predicted`` holds any number of labels.
    """

    id: str
    text: Text
    predicted: str
    margin: float
    choices: Mapping[str, str] = field(default_factory=dict)
    multi: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The predicted labels."""
        return split_labels(self.predicted, multi=self.multi)


def read_predictions(
    path: Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    pair_column: str | None = None,
    options_column: str | None = None,
) -> tuple[list[OutputPrediction], tuple[str, ...]]:
    """Return the predictions of an output, and the labels in order; the default columns are those classified."""
    note = OutputMetadata.read(path)
    rows = read_rows(
        str(path),
        text_column=text_column or note.text,
        id_column=id_column or note.id,
        pair_column=pair_column or note.pair,
        options_column=options_column or note.options,
        skip_empty=True,
    )
    labels = _labels(rows[0].columns, note, path)
    counted, decision = note.counted, parse_group("decision", note.decision, f"{path}: ")
    if not note.exists:
        # Options that are no label names must be the words of counted labels.
        counted = not {option for row in rows for option in row.options} <= set(labels)
    predictions = [
        _prediction(row, labels, row_name(str(path), number), decision, counted=counted)
        for number, row in enumerate(rows, start=1)
        # A row without a text has no label (--skip-empty).
        if not row.empty
    ]
    return predictions, labels


def cell_value(columns: Mapping[str, Any], name: str, where: str) -> Any:
    """Return the value of a column, or raise an error that lists the columns."""
    if name not in columns:
        written = name in ("predicted", "labels", "margin") or name.startswith(_PROBABILITY)
        raise no_column(f"{where}: there is no column {name!r}", name, columns, _ALL_COLUMNS if written else "")
    return columns[name]


def _labels(columns: Mapping[str, Any], note: OutputMetadata, path: Path) -> tuple[str, ...]:
    """Return all labels: as the note beside the output names them, or those that have a probability."""
    labels = note.labels or tuple(name.removeprefix(_PROBABILITY) for name in columns if name.startswith(_PROBABILITY))
    if not labels:
        raise TextError(
            f"{path} does not say what its labels are: it has no columns {_PROBABILITY}LABEL, and "
            f"{metadata_path(path).name} is not beside it",
            hint=f"keep the two together; or {_ALL_COLUMNS}",
        )
    return labels


def _prediction(
    row: InputRow, labels: Sequence[str], where: str, decision: Decision, *, counted: bool
) -> OutputPrediction:
    if counted:
        choices = dict(zip(labels, row.options, strict=False))
    else:
        choices = {label: label for label in labels if label in row.options}
    allowed = tuple(choices) or tuple(labels)
    missing = [label for label in labels if row.columns.get(_PROBABILITY + label, 0.0) in (None, "")]
    if missing and not choices:
        raise TextError(
            f"{where}: not all labels have a probability, so the labels seem to differ from row to row",
            hint="name the column that holds each row's labels: --options-column",
        )
    if decision.multi or ("labels" in row.columns and "predicted" not in row.columns):
        return _multi_prediction(row, labels, where, decision)
    predicted = cell_text(cell_value(row.columns, "predicted", where))
    if not predicted:
        # Left for review (--review-below): the label is needed to find a better margin.
        [predicted] = decision.choose(_probabilities(row, allowed, where))
    if predicted not in allowed:
        raise TextError(
            f"{where}: the predicted label {predicted!r} is unknown", hint=f"the row's labels are: {', '.join(allowed)}"
        )
    return OutputPrediction(row.id, row.text, predicted, _number(row.columns, "margin", where), choices)


def _multi_prediction(row: InputRow, labels: Sequence[str], where: str, decision: Decision) -> OutputPrediction:
    predicted = split_labels(cell_text(cell_value(row.columns, "labels", where)), multi=True)
    if str(row.columns.get("review")) == "True":
        # Left for review: which labels it would have had is not written, but for their probabilities.
        predicted = decision.model_copy(update={"multi": True}).choose(_probabilities(row, labels, where))
    if unknown := [name for name in predicted if name not in labels]:
        raise TextError(
            f"{where}: the predicted label {unknown[0]!r} is unknown", hint=f"the labels are: {', '.join(labels)}"
        )
    margin = _number(row.columns, "margin", where)
    return OutputPrediction(row.id, row.text, SEPARATOR.join(predicted), margin, multi=True)


def _probabilities(row: InputRow, labels: Sequence[str], where: str) -> dict[str, float]:
    return {label: _number(row.columns, _PROBABILITY + label, where) for label in labels}


def _number(columns: Mapping[str, Any], name: str, where: str) -> float:
    value = cell_value(columns, name, where)
    number = read_number(value)
    if number is None:
        raise TextError(f"{where}: {value!r} in column {name!r} is not a number", hint="leave it as zicl wrote it")
    return number
