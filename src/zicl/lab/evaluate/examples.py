"""Labelled examples of a task: read from a file or a public data set, checked, and subsampled."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any, Literal

import numpy as np

from zicl._util.random import rng, stable_hash
from zicl.exceptions import DownloadError, ModelError, TextError
from zicl.inputs.files import detect_format, no_column
from zicl.inputs.pair import Text, text_key
from zicl.inputs.tables import check_distinct, read_options, read_records, row_name
from zicl.inputs.texts import check_columns
from zicl.lab.evaluate.tasks import Hub, Task

_LOG = logging.getLogger("zicl")
Split = Literal["test", "train"]
# A larger public data set is sampled before it is read, to bound the memory.
_MOST = 100_000
# A file may lack these id columns, and its rows are then numbered; an id column the user named must exist.
_OPTIONAL_IDS = ("", "id")


@dataclass(frozen=True)
class Example:
    """A text with its gold label, and its options if they differ from example to example."""

    id: str
    text: Text
    label: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Columns:
    """The columns of a record's text, label and id, and the label names of its label values."""

    text: str
    label: str
    id: str
    values: dict[str, str]
    pair: str = ""
    options: str = ""


def read_examples(task: Task, source: str | Path | None = None, split: Split = "test") -> list[Example]:
    """Read all examples of a split: from the file ``source``, else the task's file, else its public data set.

    ``source="hub"`` means the public data set. Rows without an id are numbered from 1.
    """
    source = source or getattr(task, split) or "hub"
    if source == "hub":
        where = f"{task.hub.id if task.hub else ''}, {split}"
        return _checked(_hub_records(task, split), _hub_columns(task, split), where)
    names = task.labels.names
    columns = _Columns(
        task.text_column,
        task.label_column,
        task.id_column,
        task.values or dict(zip(names, names, strict=True)),
        task.pair_column,
        task.options_column,
    )
    return _checked(enumerate(_file_records(Path(source)), start=1), columns, str(source))


def read_test(task: Task, source: str | Path | None = None) -> list[Example]:
    """Read the examples a task is tested on: all, or ``task.sample`` of them.

    The sample depends on ``task.sample_seed`` alone. It is stratified by label; the paper says it samples uniformly.
    """
    examples = read_examples(task, source, "test")
    return examples if len(examples) <= task.sample else subsample(examples, task.sample, task.sample_seed)


def subsample(examples: Sequence[Example], n: int, seed: int) -> list[Example]:
    """Return ``n`` examples, stratified by label; a smaller sample is the beginning of a larger one.

    Examples of a label are ordered by a seeded hash of their ids, so the order of the file does not matter. Labels are
    then interleaved: the r-th of a label's c examples (r counted from 0) gets position (r + 1/2) / c.

    >>> subsample([Example(str(n), "text", "ab"[n % 2]) for n in range(8)], 4, seed=0) == (
    ...     subsample([Example(str(n), "text", "ab"[n % 2]) for n in reversed(range(8))], 8, seed=0)[:4])
    True
    """
    by_label: dict[str, list[Example]] = defaultdict(list)
    for example in sorted(examples, key=lambda example: stable_hash(seed, example.id, "subsample")):
        by_label[example.label].append(example)
    placed = [
        ((rank + 0.5) / len(members), label, example)
        for label, members in by_label.items()
        for rank, example in enumerate(members)
    ]
    return [example for _, _, example in sorted(placed, key=lambda item: item[:2])[:n]]


def data_hash(examples: Iterable[Example]) -> str:
    """Return a hash of the examples' ids, texts and labels that does not depend on their order."""
    ordered = sorted(examples, key=lambda example: example.id)
    return f"{stable_hash(*(part for e in ordered for part in (e.id, text_key(e.text), e.label, *e.options))):032x}"


def _file_records(path: Path) -> list[Any]:
    if detect_format(path.name) == "txt":
        raise TextError(f"{path}: a file of this kind holds no labels", hint="expected .csv, .jsonl or .parquet")
    return read_records(str(path))


def _hub_columns(task: Task, split: Split) -> _Columns:
    if task.hub is None:
        option = {"test": "--data", "train": "--train"}[split]
        raise TextError(
            f"the task {task.name} names no {'training' if split == 'train' else 'test'} examples",
            hint=f"give a file: {split} = in the tasks file, or {option} {task.name}=FILE",
        )
    values = {str(value): name for value, name in zip(task.hub.values, task.labels.names, strict=True)}
    # No id column: rows of a public data set are numbered, as ids may repeat.
    return _Columns("text" if _joins(task.hub) else task.hub.text, task.hub.label, "", values)


def _joins(hub: Hub) -> bool:
    """Return whether the text is joined from several columns."""
    return "{" in hub.text


def _hub_records(task: Task, split: Split) -> Iterator[tuple[int, Any]]:
    hub = task.hub
    if hub is None:
        return
    try:
        import datasets
    except ImportError as error:
        raise ModelError(
            f"the examples of {task.name} are not in a file, and reading Hugging Face data sets needs an extra",
            hint=f'pip install "zicl[data]", or give a file: [{task.name}] and {split} = "FILE" in a tasks file',
        ) from error
    try:
        rows = datasets.load_dataset(hub.id, hub.config, split=getattr(hub, split))
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise DownloadError(
            f"the data set {hub.id} ({getattr(hub, split)}) could not be read: {error}",
            hint=f'give a file instead: [{task.name}] and {split} = "FILE" in a tasks file',
        ) from error
    empty = 0
    for number in _chosen_rows(task, hub, split, len(rows)):
        row = _joined(hub, rows[number])
        text = row.get("text" if _joins(hub) else hub.text, "absent")
        if text is None or not str(text).strip():
            empty += 1
        else:
            yield number + 1, row
    if empty:
        _LOG.warning("%s (%s): %d rows without text were left out", hub.id, getattr(hub, split), empty)


def _chosen_rows(task: Task, hub: Hub, split: Split, count: int) -> Sequence[int]:
    """Return which rows of a public data set are read, in order."""
    part = hub.test_rows if split == "test" else hub.train_rows
    if part is not None:
        if part[1] > count:
            raise TextError(
                f"{hub.id} ({getattr(hub, split)}) has {count:,} rows, and the task {task.name} uses rows {part[0]:,} "
                f"to {part[1]:,}",
                hint=f"set hub.{split}_rows in the tasks file, or name a file of examples",
            )
        order = np.arange(count)
        # The authors' generator, for the authors' rows.
        np.random.RandomState(hub.shuffle).shuffle(order)
        return [int(number) for number in order[part[0] : part[1]]]
    if count <= _MOST:
        return range(count)
    return sorted(rng(task.sample_seed, hub.id, split).choice(count, _MOST, replace=False).tolist())


def _joined(hub: Hub, row: Any) -> Any:
    """Return a row with the column ``text``, if the text is joined from several."""
    if not _joins(hub):
        return row
    columns = [name for _, name, _, _ in Formatter().parse(hub.text) if name]
    filled = {name: "" if value is None else value for name, value in row.items()}
    try:
        # Without any of its columns a row has no text, whatever stands between them.
        text = hub.text.format_map(filled) if any(str(filled[name]).strip() for name in columns) else ""
        return {**row, "text": text}
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise TextError(
            f"{hub.id}: the text {hub.text!r} cannot be joined: {error} is no column",
            hint=f"there are: {', '.join(map(str, row))}",
        ) from error


def _checked(records: Iterable[tuple[int, Any]], columns: _Columns, name: str) -> list[Example]:
    examples = [_example(record, number, columns, row_name(name, number)) for number, record in records]
    if not examples:
        raise TextError(f"{name} holds no rows", hint="check the file")
    check_distinct((example.id for example in examples), name)
    return examples


def _example(record: Any, number: int, columns: _Columns, where: str) -> Example:
    if not isinstance(record, dict):
        raise TextError(f"{where}: expected an object, found {type(record).__name__}")
    wanted = {"text_column": columns.text, "label_column": columns.label}
    others = {"id_column": columns.id, "pair_column": columns.pair, "options_column": columns.options}
    wanted |= {setting: column for setting, column in others.items() if column not in _OPTIONAL_IDS}
    for setting, column in wanted.items():
        if column not in record:
            fix = f"name it with {setting} in the tasks file"
            raise no_column(f"{where}: there is no column {column!r}", column, record, fix)
    text = check_columns(record, columns.text, columns.pair, where)
    options = read_options(record[columns.options], where) if columns.options else ()
    value = record[columns.label]
    # Integers of a column with missing values are read as floats: 1.0.
    key = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if key not in columns.values:
        raise TextError(
            f"{where}: the label {value!r} is not one of the task's",
            hint=f"expected one of: {', '.join(columns.values)}; or say with values = {{…}} which label it means",
        )
    label = columns.values[key]
    if options and (len(set(options)) < len(options) or not int(label) <= len(options) <= len(columns.values)):
        raise TextError(
            f"{where}: {len(options)} options, of which the label is number {label}",
            hint=f"expected different options, at most {len(columns.values)}, and the number of one of them",
        )
    return Example(str(record.get(columns.id, number)), text, label, options)
