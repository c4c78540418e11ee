"""The sheet that is labelled by hand: a CSV file with an empty ``gold`` column, written once and read back."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zicl._files import write_text
from zicl.exceptions import StorageError, TextError, UsageError
from zicl.rows import read_rows

_SHARE = "p:"


@dataclass(frozen=True)
class Prediction:
    """A row of what ``zicl classify`` wrote; ``shares`` are its probabilities by label."""

    id: str
    text: str
    predicted: str
    margin: float
    shares: tuple[Any, ...] = ()


@dataclass(frozen=True)
class SheetRow:
    """A row to label. ``weight`` says how many rows of the output it stands for."""

    prediction: Prediction
    stratum: str
    weight: float
    gold: str = ""


@dataclass(frozen=True)
class Sheet:
    """The rows to label and the labels to choose from."""

    labels: tuple[str, ...]
    rows: tuple[SheetRow, ...]


def read_predictions(
    path: Path, *, text_column: str = "text", id_column: str | None = None
) -> tuple[list[Prediction], tuple[str, ...]]:
    """The predictions in an output of ``zicl classify`` and the labels, in their order."""
    rows = read_rows(str(path), text_column=text_column, id_column=id_column)
    labels = _labels(rows[0].columns, path)
    found = []
    for number, row in enumerate(rows, start=1):
        found.append(_prediction(row.id, row.text, row.columns, labels, f"{path}, row {number}"))
    return found, labels


def write_sheet(path: Path, sheet: Sheet, *, overwrite: bool = False) -> None:
    """Write the CSV file; one in which labels were filled in is left alone unless ``overwrite`` says otherwise."""
    if path.suffix != ".csv":
        raise UsageError(f"{path}: the sheet is a .csv file", hint="end its name in .csv")
    if path.exists() and not overwrite:
        _check_unlabelled(path)
    # What the program thinks stands at the far right: a person should read the text first.
    shares = [f"{_SHARE}{name}" for name in sheet.labels]
    columns = ["id", "text", "gold", "predicted", "margin", *shares, "stratum", "weight"]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in sheet.rows:
        one = row.prediction
        shown = one.shares or ("",) * len(shares)
        writer.writerow([one.id, one.text, row.gold, one.predicted, one.margin, *shown, row.stratum, repr(row.weight)])
    # With this mark, spreadsheet programs read the file as UTF-8.
    write_text(path, "\ufeff" + buffer.getvalue())


def read_sheet(path: Path) -> Sheet:
    """Read a sheet back; an unknown label in ``gold`` is an error that names the row. Case does not matter."""
    rows = read_rows(str(path), id_column="id")
    labels = _labels(rows[0].columns, path)
    known = {name.casefold(): name for name in labels}
    if len(known) < len(labels):
        known = {name: name for name in labels}
    found = []
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        gold = str(_cell(row.columns, "gold", where) or "").strip()
        if gold and gold not in known and gold.casefold() not in known:
            raise TextError(
                f"{where} (id {row.id}): the label {gold!r} in column 'gold' is unknown",
                hint=f"expected one of: {', '.join(labels)}; or leave it empty",
            )
        name = (known.get(gold) or known[gold.casefold()]) if gold else ""
        weight = _number(row.columns, "weight", where)
        if weight <= 0:
            raise TextError(f"{where}: the weight {weight} is not above 0", hint="leave that column as it was written")
        stratum = str(_cell(row.columns, "stratum", where))
        found.append(SheetRow(_prediction(row.id, row.text, row.columns, labels, where), stratum, weight, name))
    return Sheet(labels, tuple(found))


def _check_unlabelled(path: Path) -> None:
    try:
        gold = [str(row.columns["gold"] or "").strip() for row in read_rows(str(path))]
    except (TextError, KeyError) as error:
        raise StorageError(
            f"{path} exists and is no sheet to label", hint="choose another -o, or pass --overwrite"
        ) from error
    filled = sum(map(bool, gold))
    if filled:
        raise StorageError(
            f"{path} holds {filled} labels filled in by hand", hint="choose another -o, or pass --overwrite"
        )


def _labels(columns: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    labels = tuple(name.removeprefix(_SHARE) for name in columns if name.startswith(_SHARE))
    if not labels:
        raise TextError(
            f"{path} has no columns {_SHARE}LABEL", hint="expected a file written by zicl classify --file … -o …"
        )
    return labels


def _prediction(id_: str, text: str, columns: Mapping[str, Any], labels: Sequence[str], where: str) -> Prediction:
    predicted = str(_cell(columns, "predicted", where))
    if predicted not in labels:
        raise TextError(
            f"{where}: the predicted label {predicted!r} is unknown", hint=f"there are columns for: {', '.join(labels)}"
        )
    shares = tuple(columns.get(f"{_SHARE}{name}", "") for name in labels)
    return Prediction(id_, text, predicted, _number(columns, "margin", where), shares)


def _cell(columns: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in columns:
        raise TextError(f"{where}: there is no column {name!r}", hint=f"there are: {', '.join(columns)}")
    return columns[name]


def _number(columns: Mapping[str, Any], name: str, where: str) -> float:
    value = _cell(columns, name, where)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise TextError(f"{where}: {value!r} in column {name!r} is not a number", hint="leave it as zicl wrote it")
    return number
