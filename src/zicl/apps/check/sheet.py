"""The sheet that is labelled by hand: a CSV file with an empty ``gold`` column, written once and read back.

What zicl predicted is not in it, as it would sway who labels, but in ``.NAME.key.json`` beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from zicl._util.files import read_json, write_json, write_text
from zicl.apps.check.predictions import OutputPrediction, cell
from zicl.exceptions import StorageError, TextError, UsageError
from zicl.inputs.output import to_csv
from zicl.inputs.pair import Pair, Text, text_parts
from zicl.inputs.tables import InputRow, read_rows, row_name

# The columns that a sheet has only where rows are pairs, or have labels of their own.
_SECOND, _CHOICES = "second text", "choices"
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_AGAIN = "it was written beside the sheet, under its name: move or rename it as the sheet was, or draw the sheet again"


@dataclass(frozen=True)
class SheetRow:
    """A row to label. ``weight`` says how many rows of the output it stands for."""

    prediction: OutputPrediction
    stratum: str
    weight: float
    gold: str = ""


@dataclass(frozen=True)
class Sheet:
    """The rows to label and the labels to choose from."""

    labels: tuple[str, ...]
    rows: tuple[SheetRow, ...]


def key_path(path: Path) -> Path:
    """The file beside a sheet that holds what was predicted and how the rows were drawn."""
    return path.with_name(f".{path.name}.key.json")


def write_sheet(path: Path, sheet: Sheet, *, overwrite: bool = False) -> None:
    """Write the CSV file; one in which labels were filled in is left alone unless ``overwrite`` says otherwise."""
    if path.suffix != ".csv":
        raise UsageError(f"{path}: the sheet is a .csv file", hint="end its name in .csv")
    if path.exists() and not overwrite:
        _check_unlabelled(path)
    columns = ["id", "text", *_extra(sheet.rows), "gold"]
    shown = [{name: row[name] for name in columns} for row in map(_shown, sheet.rows)]
    # Were this stopped half way, a new sheet must not be read with the predictions of an old one.
    key_path(path).unlink(missing_ok=True)
    # With this mark, spreadsheet programs read the file as UTF-8.
    write_text(path, "\ufeff" + to_csv(shown, columns))
    drawn = [{**asdict(row.prediction), "stratum": row.stratum, "weight": row.weight} for row in sheet.rows]
    write_json(key_path(path), {"labels": sheet.labels, "rows": drawn})


def read_sheet(path: Path) -> Sheet:
    """Read a sheet back; an unknown label in ``gold`` is an error that names the row. Case does not matter.

    Rows that were taken out of the sheet count as not labelled.
    """
    drawn = _read_key(path)
    pair_column = _SECOND if _SECOND in _extra(drawn.rows) else None
    find, gold = _Finder(drawn), dict[str, str]()
    # Spreadsheet programs may have made two ids the same: texts tell them apart.
    for number, row in enumerate(read_rows(str(path), pair_column=pair_column, distinct=False), start=1):
        where = row_name(str(path), number)
        given = str(cell(row.columns, "gold", where) or "").strip()
        one = find(row, where)
        if one.id in gold:
            raise TextError(f"{where}: the row {one.id!r} stands there twice", hint="take one of them out")
        gold[one.id] = _label(given, one.choices or {name: name for name in drawn.labels}, f"{where} (id {one.id})")
    return Sheet(drawn.labels, tuple(replace(row, gold=gold.get(row.prediction.id, "")) for row in drawn.rows))


def _label(given: str, choices: Mapping[str, str], where: str) -> str:
    """The label that was filled in, by its name, its words or both as the sheet has them; none is none."""
    if not given:
        return ""
    for same in (str, str.casefold):
        found = {
            name
            for name, words in choices.items()
            if same(given) in (same(name), same(words), same(_choice(name, words)))
        }
        if len(found) == 1:
            return found.pop()
        if found:
            raise TextError(
                f"{where}: {given!r} in column 'gold' may be any of {', '.join(sorted(found))}",
                hint="write it as the sheet has it: " + " | ".join(_choice(*one) for one in choices.items()),
            )
    raise TextError(
        f"{where}: the label {given!r} in column 'gold' is unknown",
        hint=f"expected one of: {', '.join(choices)}; or leave it empty",
    )


def _choice(name: str, words: str) -> str:
    return name if name == words else f"{name}: {words}"


def _extra(rows: Sequence[SheetRow]) -> list[str]:
    paired = any(isinstance(row.prediction.text, Pair) for row in rows)
    chosen = any(row.prediction.choices for row in rows)
    return [_SECOND] * paired + [_CHOICES] * chosen


def _shown(row: SheetRow) -> dict[str, str]:
    """What who labels a row gets to see."""
    text, *second = text_parts(row.prediction.text)
    choices = " | ".join(_choice(*one) for one in row.prediction.choices.items())
    return {
        "id": row.prediction.id,
        "text": _guarded(text),
        _SECOND: _guarded("".join(second)),
        _CHOICES: _guarded(choices),
        "gold": row.gold,
    }


def _guarded(text: str) -> str:
    """A text that a spreadsheet program would take for a formula, with an apostrophe before it."""
    return f"'{text}" if _FORMULA.match(text) else text


def _read_key(path: Path) -> Sheet:
    key = key_path(path)
    if not key.is_file():
        raise StorageError(f"{key}, which says what zicl predicted for the rows of {path}, is not there", hint=_AGAIN)
    try:
        found = read_json(key)
        rows = []
        for entry in found["rows"]:
            text = Pair(**entry["text"]) if isinstance(entry["text"], dict) else entry["text"]
            one = OutputPrediction(entry["id"], text, entry["predicted"], entry["margin"], entry["choices"])
            rows.append(SheetRow(one, entry["stratum"], entry["weight"]))
        return Sheet(tuple(found["labels"]), tuple(rows))
    except (KeyError, TypeError) as error:
        raise StorageError(f"{key} is damaged", hint=_AGAIN) from error


class _Finder:
    """Which drawn row a row of the sheet is: by its id, else by its text.

    Spreadsheet programs write ids anew that look like numbers to them: 007 as 7, 12e4 as 120000.
    """

    def __init__(self, drawn: Sheet) -> None:
        self._ids = {row.prediction.id: row.prediction for row in drawn.rows}
        self._texts: dict[str, list[OutputPrediction]] = {}
        for row in drawn.rows:
            self._texts.setdefault(_plain(row.prediction.text), []).append(row.prediction)

    def __call__(self, row: InputRow, where: str) -> OutputPrediction:
        named, like = self._ids.get(row.id), self._texts.get(_plain(row.text), [])
        if named is not None and (named in like or not like):
            return named
        if len(like) == 1 and named is None:
            return like[0]
        raise TextError(
            f"{where}: the id {row.id!r} is "
            + ("none of those that were drawn" if named is None else "that of another row with another text"),
            hint="leave the columns id and text as zicl wrote them",
        )


def _plain(text: Text) -> str:
    return " ".join(" ".join(half.split()).removeprefix("'") for half in text_parts(text))


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
