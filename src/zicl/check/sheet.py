"""The sheet that is labelled by hand: a CSV file with an empty ``gold`` column, written once and read back.

What zicl predicted is not in it, as it would sway who labels, but in ``.NAME.key.json`` beside it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from zicl._files import read_json, write_json, write_text
from zicl.exceptions import StorageError, TextError, UsageError
from zicl.rows import Row, read_rows, row_name

_SHARE = "p:"
_AGAIN = "it was written beside the sheet, under its name: move or rename it as the sheet was, or draw the sheet again"


@dataclass(frozen=True)
class Prediction:
    """A row of what ``zicl classify`` wrote."""

    id: str
    text: str
    predicted: str
    margin: float


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
        found.append(_prediction(row.id, row.text, row.columns, labels, row_name(str(path), number)))
    return found, labels


def key_path(path: Path) -> Path:
    """The file beside a sheet that holds what was predicted and how the rows were drawn."""
    return path.with_name(f".{path.name}.key.json")


def write_sheet(path: Path, sheet: Sheet, *, overwrite: bool = False) -> None:
    """Write the CSV file; one in which labels were filled in is left alone unless ``overwrite`` says otherwise."""
    if path.suffix != ".csv":
        raise UsageError(f"{path}: the sheet is a .csv file", hint="end its name in .csv")
    if path.exists() and not overwrite:
        _check_unlabelled(path)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["id", "text", "gold"])
    writer.writerows([row.prediction.id, row.prediction.text, row.gold] for row in sheet.rows)
    # Were this stopped half way, a new sheet must not be read with the predictions of an old one.
    key_path(path).unlink(missing_ok=True)
    # With this mark, spreadsheet programs read the file as UTF-8.
    write_text(path, "\ufeff" + buffer.getvalue())
    drawn = [{**asdict(row.prediction), "stratum": row.stratum, "weight": row.weight} for row in sheet.rows]
    write_json(key_path(path), {"labels": sheet.labels, "rows": drawn})


def read_sheet(path: Path) -> Sheet:
    """Read a sheet back; an unknown label in ``gold`` is an error that names the row. Case does not matter.

    Rows that were taken out of the sheet count as not labelled.
    """
    rows = read_rows(str(path))
    drawn = _read_key(path)
    known = {name.casefold(): name for name in drawn.labels}
    if len(known) < len(drawn.labels):
        known = {name: name for name in drawn.labels}
    find, gold = _Finder(drawn), dict[str, str]()
    for number, row in enumerate(rows, start=1):
        where = row_name(str(path), number)
        given = str(_cell(row.columns, "gold", where) or "").strip()
        if given and given not in known and given.casefold() not in known:
            raise TextError(
                f"{where} (id {row.id}): the label {given!r} in column 'gold' is unknown",
                hint=f"expected one of: {', '.join(drawn.labels)}; or leave it empty",
            )
        gold[find(row, where)] = (known.get(given) or known[given.casefold()]) if given else ""
    return Sheet(drawn.labels, tuple(replace(row, gold=gold.get(row.prediction.id, "")) for row in drawn.rows))


def _read_key(path: Path) -> Sheet:
    key = key_path(path)
    if not key.is_file():
        raise StorageError(f"{key}, which says what zicl predicted for the rows of {path}, is not there", hint=_AGAIN)
    try:
        found = read_json(key)
        rows = []
        for entry in found["rows"]:
            one = Prediction(*(entry[name] for name in ("id", "text", "predicted", "margin")))
            rows.append(SheetRow(one, entry["stratum"], entry["weight"]))
        return Sheet(tuple(found["labels"]), tuple(rows))
    except (KeyError, TypeError) as error:
        raise StorageError(f"{key} is damaged", hint=_AGAIN) from error


class _Finder:
    """Which drawn row a row of the sheet is: by its id, else by its text.

    Spreadsheet programs write ids anew that look like numbers to them: 007 as 7, 12e4 as 120000.
    """

    def __init__(self, drawn: Sheet) -> None:
        self._ids = {row.prediction.id for row in drawn.rows}
        self._texts: dict[str, list[str]] = {}
        for row in drawn.rows:
            self._texts.setdefault(_plain(row.prediction.text), []).append(row.prediction.id)

    def __call__(self, row: Row, where: str) -> str:
        if row.id in self._ids:
            return row.id
        like = self._texts.get(_plain(row.text), [])
        if len(like) != 1:
            raise TextError(
                f"{where}: the id {row.id!r} is none of those that were drawn",
                hint="leave the columns id and text as zicl wrote them",
            )
        return like[0]


def _plain(text: str) -> str:
    return " ".join(text.split())


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
    predicted = str(_cell(columns, "predicted", where) or "")
    if not predicted:
        # Left to a person (--review-below): what it would have been is what a better margin is found with.
        predicted = max(labels, key=lambda label: _number(columns, _SHARE + label, where))
    if predicted not in labels:
        raise TextError(
            f"{where}: the predicted label {predicted!r} is unknown", hint=f"there are columns for: {', '.join(labels)}"
        )
    return Prediction(id_, text, predicted, _number(columns, "margin", where))


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
