"""The sheet that is labelled by hand: a table with an empty ``gold`` column, or tasks for Label Studio.

Predictions would bias the person who labels: they are in ``.NAME.key.json`` beside the sheet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from zicl._util.counts import counted
from zicl._util.files import atomic_write, check_place, exists_error, read_json, write_text
from zicl._util.process import require_extra
from zicl._util.schema import Entries, Strict, check_schema
from zicl.apps.check import label_studio
from zicl.apps.check.label_studio import format_choice
from zicl.apps.check.predictions import OutputPrediction, cell_value
from zicl.exceptions import StorageError, TextError, UsageError
from zicl.inputs.excel import check_workbook_fits, write_workbook
from zicl.inputs.files import split_sheet
from zicl.inputs.output import BYTE_ORDER_MARK, to_csv
from zicl.inputs.pair import Pair, Text, text_parts
from zicl.inputs.tables import InputRow, read_rows, row_name
from zicl.inputs.texts import cell_text
from zicl.prompt.labels import NO_LABEL, SEPARATOR, split_labels

SheetFormat = Literal["table", "label-studio"]
# Columns that a sheet has only if rows are pairs, or if labels differ from row to row.
_SECOND, _CHOICES = "second text", "choices"
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_KEY_HINT = "it belongs beside the sheet: move or rename it with that, draw the sheet again, or name it with --sheet"


@dataclass(frozen=True)
class SheetRow:
    """A row to label. ``weight`` is the number of rows of the output that it represents."""

    prediction: OutputPrediction
    stratum: str
    weight: float
    gold: str = ""

    @property
    def gold_labels(self) -> tuple[str, ...]:
        """The labels that were filled in."""
        return split_labels(self.gold, multi=self.prediction.multi)


@dataclass(frozen=True)
class Sheet:
    """The rows to label and the labels to choose from."""

    labels: tuple[str, ...]
    rows: tuple[SheetRow, ...]


class PairEntry(Strict):
    """Two texts, as they are stored."""

    first: str
    second: str


class KeyRow(Strict):
    """A row that was drawn, with what was predicted."""

    id: str
    text: str | PairEntry
    predicted: str
    margin: FiniteFloat
    choices: dict[str, str]
    multi: bool = False
    stratum: str
    weight: Annotated[FiniteFloat, Field(gt=0)]


class KeyContent(Strict):
    """What the file beside a sheet holds."""

    labels: Entries[str]
    rows: Annotated[Entries[KeyRow], Field(min_length=1)]


def key_path(path: Path) -> Path:
    """Return the path of the file beside a sheet that holds the predictions, strata and weights."""
    return path.with_name(f".{split_sheet(path.name)[0]}.key.json")


def config_path(path: Path) -> Path:
    """Return the path of the labeling interface beside tasks for Label Studio."""
    return path.with_name(f"{path.stem}.labeling.xml")


def check_sheet_path(path: Path, kind: SheetFormat = "table", *, overwrite: bool = False) -> None:
    """Check that a sheet can be written; one with labels, and all tasks, are replaced only with ``overwrite``."""
    check_place(path)
    suffixes = (".csv", ".xlsx") if kind == "table" else (".json",)
    if path.suffix not in suffixes:
        hint = f"end its name in {' or '.join(suffixes)}"
        if path.suffix == ".json":
            hint += "; tasks for Label Studio: --format label-studio"
        raise UsageError(f"{path}: the sheet is a {' or '.join(suffixes)} file", hint=hint)
    if path.suffix == ".xlsx":
        require_extra("excel", "writing .xlsx files", "openpyxl")
    if overwrite:
        return
    if path.exists():
        _check_unlabelled(path)
    if kind == "label-studio" and key_path(path).exists():
        # The labels are in Label Studio, and can be scored with this key only.
        raise StorageError(
            f"{path} was drawn before, and its tasks may be labelled in Label Studio",
            hint="choose another -o, or pass --overwrite: an export of the old tasks is not scored with new ones",
        )


def write_sheet(
    path: Path, sheet: Sheet, *, overwrite: bool = False, kind: SheetFormat = "table", blind: bool = False
) -> None:
    """Write a sheet: a table, or tasks whose predictions ``blind`` leaves out, with their labeling interface."""
    check_sheet_path(path, kind, overwrite=overwrite)
    columns = ["id", "text", *_optional_columns(sheet.rows), "gold"]
    plain = path.suffix == ".xlsx"
    shown = [{name: row[name] for name in columns} for row in (_sheet_columns(each, plain) for each in sheet.rows)]
    if path.suffix == ".xlsx":
        check_workbook_fits(shown, path)
    if kind == "label-studio":
        write_text(config_path(path), label_studio.labeling_config([r.prediction for r in sheet.rows], sheet.labels))
    drawn = [{**asdict(row.prediction), "stratum": row.stratum, "weight": row.weight} for row in sheet.rows]
    key = json.dumps({"labels": sheet.labels, "rows": drawn}, indent=2, ensure_ascii=False, sort_keys=True)
    # Both are written before the old ones go: a full disk leaves these.
    with atomic_write(key_path(path)) as new_key, atomic_write(path) as new_sheet:
        new_key.write_text(key + "\n", encoding="utf-8")
        if kind == "label-studio":
            tasks = label_studio.make_tasks([row.prediction for row in sheet.rows], blind=blind)
            new_sheet.write_text(json.dumps(tasks, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        elif path.suffix == ".xlsx":
            write_workbook(new_sheet, columns, shown)
        else:
            table = to_csv(shown, columns)
            new_sheet.write_text(("" if table.isascii() else BYTE_ORDER_MARK) + table, encoding="utf-8")
        # If the process is killed between the two files, a new sheet must not be read with old predictions.
        key_path(path).unlink(missing_ok=True)


def read_sheet(path: Path, drawn_as: Path | None = None) -> Sheet:
    """Read a sheet back; an unknown label in ``gold`` is an error that names the row. Case does not matter.

    Rows that were removed from the sheet count as not labelled. ``drawn_as`` is the sheet as it was written, where its
    labels come in another file, such as an export of Label Studio.
    """
    drawn = _read_key(drawn_as or path)
    is_pair = _SECOND in _optional_columns(drawn.rows)
    match, gold = _RowMatcher(drawn), dict[str, str]()
    # Not distinct: spreadsheet programs may have changed two ids to the same value.
    for number, row in enumerate(_sheet_rows(path, is_pair=is_pair), start=1):
        where = row_name(str(path), number)
        given = cell_text(cell_value(row.columns, "gold", where)).strip()
        prediction = match(row, where)
        if prediction.id in gold:
            raise TextError(f"{where}: the row {prediction.id!r} occurs twice", hint="remove one of them")
        choices = prediction.choices or {name: name for name in drawn.labels}
        place = f"{where} (id {prediction.id})"
        gold[prediction.id] = _parse_labels(given, choices, place, multi=prediction.multi)
    return Sheet(drawn.labels, tuple(replace(row, gold=gold.get(row.prediction.id, "")) for row in drawn.rows))


def read_gold(
    path: Path,
    labels: Sequence[str],
    *,
    multi: bool = False,
    text_column: str = "text",
    pair_column: str | None = None,
) -> dict[Text, str]:
    """Return the labels that were filled in, by text: of a sheet, or of any file with a column ``gold``.

    With ``multi`` several are separated by ``|``, and ``-`` says that a text has none of them.
    """
    gold: dict[Text, str] = {}
    for where, text, label in _gold_rows(path, labels, text_column, pair_column, multi=multi):
        if gold.setdefault(text.strip(), label) != label:
            raise TextError(f"{where}: this text has two different gold labels", hint="keep one of them")
    if not gold:
        raise TextError(f"{path} has no label in its column 'gold'", hint="fill some in, or leave out --gold")
    return gold


def _gold_rows(
    path: Path, labels: Sequence[str], text_column: str, pair_column: str | None, *, multi: bool
) -> Iterator[tuple[str, Text, str]]:
    """Yield the place, the text and the label of every row whose label was filled in."""
    if key_path(path).is_file():
        for row in read_sheet(path).rows:
            where = f"{path} (id {row.prediction.id})"
            given = row.gold_labels if row.gold else ()
            if unknown := [name for name in given if name not in labels]:
                raise TextError(
                    f"{where}: the gold label {unknown[0]!r} is no label here",
                    hint=f"the labels are: {', '.join(labels)}",
                )
            if row.gold:
                yield where, row.prediction.text, SEPARATOR.join(given) or NO_LABEL
        return
    choices = {name: name for name in labels}
    if label_studio.is_export(path):
        rows = label_studio.read_export(path, text_column, pair_column)
    else:
        rows = read_rows(str(path), text_column=text_column, pair_column=pair_column, distinct=False, skip_empty=True)
    for number, each in enumerate(rows, start=1):
        where = row_name(str(path), number)
        if "gold" not in each.columns:
            raise TextError(
                f"{path} has no column 'gold'",
                hint="give that name to the column with the labels; an empty cell is a label that is not known",
            )
        label = _parse_labels(cell_text(each.columns["gold"]).strip(), choices, where, multi=multi)
        if label and each.empty:
            raise TextError(f"{where} has a label and no text", hint="give it its text, or remove the label")
        if label:
            yield where, each.text, label


def _sheet_rows(path: Path, *, is_pair: bool = False) -> list[InputRow]:
    if label_studio.is_export(path):
        return label_studio.read_export(path, pair_column=label_studio.SECOND if is_pair else None)
    return read_rows(str(path), pair_column=_SECOND if is_pair else None, distinct=False)


def _parse_labels(given: str, choices: Mapping[str, str], where: str, *, multi: bool) -> str:
    """Return the label that was filled in; with ``multi`` several, or ``-`` for none of them."""
    if not multi:
        return _parse_label(given, choices, where)
    if given == NO_LABEL:
        return given
    found = {_parse_label(part, choices, where) for part in split_labels(given, multi=True)}
    return SEPARATOR.join(name for name in choices if name in found)


def _parse_label(given: str, choices: Mapping[str, str], where: str) -> str:
    """Return the label that was filled in: by its name, its words, or both as in the sheet; empty stays empty."""
    if not given:
        return ""
    for normalize in (str, str.casefold):
        matches = {
            name
            for name, words in choices.items()
            if normalize(given) in (normalize(name), normalize(words), normalize(format_choice(name, words)))
        }
        if len(matches) == 1:
            return matches.pop()
        if matches:
            raise TextError(
                f"{where}: {given!r} in column 'gold' may be any of {', '.join(sorted(matches))}",
                hint="write it as in the sheet: " + " | ".join(format_choice(*choice) for choice in choices.items()),
            )
    raise TextError(
        f"{where}: the label {given!r} in column 'gold' is unknown",
        hint=f"expected one of: {', '.join(choices)}; or leave it empty",
    )


def _optional_columns(rows: Sequence[SheetRow]) -> list[str]:
    paired = any(isinstance(row.prediction.text, Pair) for row in rows)
    with_choices = any(row.prediction.choices for row in rows)
    return [_SECOND] * paired + [_CHOICES] * with_choices


def _sheet_columns(row: SheetRow, plain: bool) -> dict[str, str]:
    """Return the cells of a row; ``plain`` where a cell is no formula, whatever it begins with."""
    escape = str if plain else _escape_formula
    text, *second = text_parts(row.prediction.text)
    choices = " | ".join(format_choice(*choice) for choice in row.prediction.choices.items())
    return {
        "id": row.prediction.id,
        "text": escape(text),
        _SECOND: escape("".join(second)),
        _CHOICES: escape(choices),
        "gold": row.gold,
    }


def _escape_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet program would read as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def _read_key(path: Path) -> Sheet:
    key = key_path(path)
    if not key.is_file():
        raise StorageError(f"{key}, which holds the predictions for the rows of {path}, is missing", hint=_KEY_HINT)
    content = read_json(key, hint=_KEY_HINT)
    checked = check_schema(content, KeyContent, key, StorageError, _KEY_HINT)
    return Sheet(tuple(checked.labels), tuple(map(_drawn_row, checked.rows)))


def _drawn_row(row: KeyRow) -> SheetRow:
    text = row.text if isinstance(row.text, str) else Pair(row.text.first, row.text.second)
    prediction = OutputPrediction(row.id, text, row.predicted, row.margin, row.choices, row.multi)
    return SheetRow(prediction, row.stratum, row.weight)


class _RowMatcher:
    """Match a row of the sheet to a drawn row, by its id, else by its text.

    Spreadsheet programs rewrite ids that look like numbers: 007 as 7, 12e4 as 120000.
    """

    def __init__(self, drawn: Sheet) -> None:
        self._ids = {row.prediction.id: row.prediction for row in drawn.rows}
        self._texts: dict[str, list[OutputPrediction]] = {}
        for row in drawn.rows:
            self._texts.setdefault(_normalize(row.prediction.text), []).append(row.prediction)

    def __call__(self, row: InputRow, where: str) -> OutputPrediction:
        same_id, same_text = self._ids.get(row.id), self._texts.get(_normalize(row.text), [])
        if same_id is not None and (same_id in same_text or not same_text):
            return same_id
        if len(same_text) == 1 and same_id is None:
            return same_text[0]
        raise TextError(
            f"{where}: the id {row.id!r} is "
            + ("none of those that were drawn" if same_id is None else "that of another row with another text"),
            hint="leave the columns id and text as zicl wrote them",
        )


def _normalize(text: Text) -> str:
    return " ".join(" ".join(half.split()).removeprefix("'") for half in text_parts(text))


def _check_unlabelled(path: Path) -> None:
    try:
        gold = [cell_text(row.columns["gold"]).strip() for row in _sheet_rows(path)]
    except (TextError, KeyError) as error:
        raise exists_error(path, "a sheet to label", overwrite=True) from error
    filled = sum(map(bool, gold))
    if filled:
        raise StorageError(
            f"{path} holds {counted(filled, 'label')} filled in by hand", hint="choose another -o, or pass --overwrite"
        )
