"""Label Studio: the rows of a sheet as tasks with predictions, and a finished export as rows again.

An export is its JSON with all annotations, or JSON-MIN, which has one record per annotation and only those that were
submitted. Several annotations of a task: those marked as ground truth count, else the majority decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from zicl._util.files import read_json
from zicl.apps.check.predictions import OutputPrediction
from zicl.exceptions import TextError
from zicl.inputs.files import display_name
from zicl.inputs.pair import Pair, text_parts
from zicl.inputs.tables import InputRow, row_name
from zicl.inputs.texts import check_columns
from zicl.prompt.labels import NO_LABEL, SEPARATOR

# The names of the choices and of the data; JSON-MIN puts the number of the task into "id".
GOLD, TEXT, SECOND, CHOICES, ID = "gold", "text", "second_text", "choices", "zicl_id"
_NO_EXPORT = "expected a project of Label Studio, exported as JSON or JSON-MIN"


# -- tasks -------------------------------------------------------------------------------------------


def make_tasks(rows: Sequence[OutputPrediction], *, blind: bool) -> list[dict[str, Any]]:
    """Return the tasks to import; their predictions are left out if the person who labels is not to see them."""
    return [_task(row) if blind else {**_task(row), "predictions": [_prediction(row)]} for row in rows]


def _task(row: OutputPrediction) -> dict[str, Any]:
    texts = dict(zip((TEXT, SECOND), text_parts(row.text), strict=False))
    options = {CHOICES: [{"value": format_choice(*choice)} for choice in row.choices.items()]} if row.choices else {}
    return {"data": {ID: row.id, **texts, **options}}


def _prediction(row: OutputPrediction) -> dict[str, Any]:
    """Return what was predicted, with the margin as its score: sorted by it, the least certain come first."""
    chosen = [format_choice(name, row.choices.get(name, name)) for name in row.labels] or [NO_LABEL]
    result = {"from_name": GOLD, "to_name": TEXT, "type": "choices", "value": {"choices": chosen}}
    return {"model_version": "zicl", "score": row.margin, "result": [result]}


def labeling_config(rows: Sequence[OutputPrediction], labels: Sequence[str]) -> str:
    """Return the labeling interface of the project."""
    multi, pairs = any(row.multi for row in rows), any(isinstance(row.text, Pair) for row in rows)
    # Labels that differ from row to row come with the tasks.
    named = not any(row.choices for row in rows)
    values = [*labels, *[NO_LABEL] * multi] if named else []
    attributes = f'choice="{"multiple" if multi else "single"}" required="true"'
    if not named:
        attributes += f' value="${CHOICES}"'
    lines = [
        "<View>",
        *(f'  <Text name="{name}" value="${name}"/>' for name in (TEXT, SECOND)[: 1 + pairs]),
        *['  <Header value="All that fit, or - for none of them"/>'] * multi,
        f'  <Choices name="{GOLD}" toName="{TEXT}" {attributes}>',
        *(f"    <Choice value={quoteattr(value)}/>" for value in values),
        "  </Choices>",
        "</View>",
    ]
    return "\n".join(lines) + "\n"


def format_choice(name: str, words: str) -> str:
    """Return how a label is shown to the person who labels.

    >>> format_choice("1", "a cat"), format_choice("cat", "cat")
    ('1: a cat', 'cat')
    """
    return name if name == words else f"{name}: {words}"


# -- exports -----------------------------------------------------------------------------------------


def is_export(path: Path) -> bool:
    """Return whether a file is a JSON list, as Label Studio writes and reads it, and not a record per line."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def read_export(path: Path, text_column: str = TEXT, pair_column: str | None = None) -> list[InputRow]:
    """Return the tasks of an export as rows with a column ``gold``, which is empty where nobody labelled."""
    name = display_name(str(path))
    rows, disagreements = [], []
    for number, (data, labels) in enumerate(_tasks(read_json(path, TextError, hint=_NO_EXPORT), name), start=1):
        where = row_name(name, number)
        text_name, pair_name = text_column, pair_column
        if ID in data:
            # zicl wrote the task, with names of its own.
            text_name, pair_name = TEXT, SECOND if SECOND in data else None
        for option, column in {"--text-column": text_name, "--pair-column": pair_name}.items():
            if column is not None and column not in data:
                raise TextError(
                    f"{where}: the task has no {column!r}", hint=f"name it with {option}; there are: {', '.join(data)}"
                )
        [(chosen, count), *_] = Counter(labels).most_common(1) or [("", 1)]
        if 2 * count <= len(labels):
            disagreements.append(f"{where}: {' or '.join(sorted(set(labels)))}")
        text = check_columns(data, text_name, pair_name, where)
        rows.append(InputRow(str(data.get(ID, number)), text, {**data, GOLD: chosen}))
    if disagreements:
        raise TextError(
            f"annotators disagree about {len(disagreements)} of {len(rows)} tasks: {'; '.join(disagreements[:3])}",
            hint="mark the right one of each as ground truth (the star) and export as JSON, or delete the others",
        )
    return rows


def _tasks(content: Any, name: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the data of every task, and the labels of each annotation that counts."""
    if not isinstance(content, list) or not all(isinstance(task, dict) for task in content):
        raise TextError(f"{name} is no export of Label Studio", hint=_NO_EXPORT)
    if all(isinstance(task.get("data"), dict) for task in content):
        control = _control(content, name)
        for task in content:
            submitted = [each for each in _annotations(task, name) if not each.get("was_cancelled")]
            marked = [each for each in submitted if each.get("ground_truth")]
            labels = [SEPARATOR.join(_chosen(each, control, name)) for each in marked or submitted]
            yield task["data"], [label for label in labels if label]
        return
    records: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for record in content:
        records[str(record.get("id"))].append(record)
    for group in records.values():
        yield group[0], [label for label in (_minimal(record, name) for record in group) if label]


def _annotations(task: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = task.get("annotations", [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TextError(f"{name} is no export of Label Studio: its annotations are no list", hint=_NO_EXPORT)
    return found


def _results(annotation: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the choices of an annotation, one entry for each control of the labeling interface."""
    found = annotation.get("result") or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TextError(f"{name} is no export of Label Studio: its results are no list", hint=_NO_EXPORT)
    return [each for each in found if each.get("type") == "choices"]


def _control(tasks: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the name of the choices that hold the labels: ``gold``, or the only ones there are."""
    results = [result for task in tasks for each in _annotations(task, name) for result in _results(each, name)]
    names = sorted({str(result.get("from_name")) for result in results})
    if GOLD not in names and len(names) > 1:
        raise TextError(
            f"{name} has several choices: {', '.join(names)}",
            hint=f'call those with the labels name="{GOLD}" in the labeling interface, and export again',
        )
    return names[0] if len(names) == 1 else GOLD


def _chosen(annotation: Mapping[str, Any], control: str, name: str) -> list[str]:
    values = [each.get("value") for each in _results(annotation, name) if str(each.get("from_name")) == control]
    return [label for value in values for label in _choices(value, name)]


def _choices(value: Any, name: str) -> list[str]:
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
        raise TextError(f"{name}: {value!r} holds no choices", hint=_NO_EXPORT)
    return sorted(choices)


def _minimal(record: Mapping[str, Any], name: str) -> str:
    """Return the labels of a record of JSON-MIN: a string, or an object if there are several."""
    if GOLD not in record:
        if "annotation_id" in record:
            # Submitted without a choice.
            return ""
        raise TextError(
            f"{name}: a record has no {GOLD!r}; it has {', '.join(record)}",
            hint=f'{_NO_EXPORT}, whose choices are called name="{GOLD}"',
        )
    value = record[GOLD]
    return value if isinstance(value, str) else SEPARATOR.join(_choices(value, name))
