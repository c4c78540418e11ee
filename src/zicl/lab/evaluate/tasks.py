"""Tasks as data: the paper's nine ship with the package, others come from a TOML file of the same form."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    ValidationError,
    field_validator,
    model_validator,
)

from zicl._util.files import read_toml
from zicl._util.registry import did_you_mean
from zicl._util.validation import config_error
from zicl.exceptions import ConfigError, UnknownNameError
from zicl.lab.evaluate.methods import check_name
from zicl.prompt.labels import Label, Labels, make_label
from zicl.prompt.template import Template, get_template

_FORM = "expected one table per task: [NAME], and below it labels = […]"


def _labels(value: Any) -> Labels:
    """Return labels from names, or from tables of name, words, synonyms and description."""
    if isinstance(value, Labels | int):
        return Labels.of(value)
    if not isinstance(value, list | tuple) or not all(isinstance(item, str | dict) for item in value):
        raise ValueError("expected names, or tables with name, words, synonyms and description")
    return Labels(
        tuple(Label(x) if isinstance(x, str) else make_label(x, f"label {n}") for n, x in enumerate(value, start=1))
    )


class Hub(BaseModel):
    """A public data set: its splits, its columns, and its label values in the order of the task's labels.

    ``text`` is a column, or how several are joined: ``"{title}: {body}"``. With ``test_rows`` or ``train_rows`` a split
    is shuffled with the seed ``shuffle``, as NumPy's ``RandomState`` does it, and these rows are used: ``[0, 1000]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    config: str | None = None
    test: str = "test"
    train: str = "train"
    text: str = "text"
    label: str = "label"
    values: tuple[int | str, ...]
    shuffle: int = 42
    test_rows: tuple[int, int] | None = None
    train_rows: tuple[int, int] | None = None
    note: str = ""

    @field_validator("test_rows", "train_rows")
    @classmethod
    def _in_order(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value is not None and not 0 <= value[0] < value[1]:
            raise ValueError("the first row and the one after the last: [0, 1000]")
        return value


class Task(BaseModel):
    """A classification task: its labels, its template, and where its examples are.

    ``covered`` says whether the paper's corpus covers the domain; None if the paper says nothing about it.
    ``values`` maps the values of a file's label column to label names; without it the column holds the names.
    ``note`` is printed beside results, e.g. that the examples are a substitute.

    >>> get_task("SST2").labels.names, get_task("SST2").covered
    (('terrible', 'great'), False)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str = ""
    labels: Annotated[
        InstanceOf[Labels],
        BeforeValidator(_labels),
        PlainSerializer(lambda labels: [asdict(label) for label in labels]),
    ]
    template: str | tuple[str, str] = "text"
    covered: bool | None = None
    origin: str = ""
    note: str = ""
    text_column: str = "text"
    label_column: str = "label"
    # The second text of a pair; and a list of the example's options, of which the label is a number.
    pair_column: str = ""
    options_column: str = ""
    id_column: str = "id"
    values: dict[str, str] = Field(default_factory=dict)
    test: Path | None = None
    train: Path | None = None
    hub: Hub | None = None
    sample: int = Field(2000, ge=1)
    sample_seed: int = 100

    @model_validator(mode="after")
    def _check(self) -> Self:
        # Raises now, not after an hour, if there is no such template.
        template = get_template(self.template) if isinstance(self.template, str) else Template(*self.template)
        if template.two_fields != bool(self.pair_column):
            raise ValueError("a pair_column goes with a template of two fields, {first} and {second}, and only with it")
        if bool(self.options_column) != self.labels.counted:
            raise ValueError("an options_column goes with a number of labels, labels = 4, and only with it")
        unknown = sorted(set(self.values.values()) - set(self.labels.names))
        if unknown:
            raise ValueError(f"values name no label of the task: {', '.join(unknown)}")
        if self.hub is not None and len(self.hub.values) != len(self.labels):
            raise ValueError(f"the hub's {len(self.hub.values)} values do not fit {len(self.labels)} labels")
        return self


def read_tasks(path: Path | None = None) -> dict[str, Task]:
    """Return the shipped tasks, or those of a TOML file with one table each, ``[NAME]``.

    Paths in the file are relative to it. An entry without labels that has the name of a shipped task changes
    that task: ``[SST2]`` with ``test = "sst2.csv"`` is enough to run it on another file.

    >>> " ".join(read_tasks())
    'CR Amz Amz5 Yelp Yelp5 Tweet MR SST2 SST5'
    """
    if path is None:
        text = files("zicl").joinpath("data/tasks.toml").read_text(encoding="utf-8")
        return {name: Task(name=name, **entry) for name, entry in tomllib.loads(text).items()}
    tables = read_toml(path, ConfigError, missing="check the path of the tasks file", form=_FORM)
    if not tables:
        raise ConfigError(f"{path} names no task", hint=_FORM)
    shipped = read_tasks()
    return {name: _task(name, entry, path, shipped) for name, entry in tables.items()}


def get_task(name: str, extra: Mapping[str, Task] | None = None) -> Task:
    """Return a task by name; those in ``extra`` replace shipped ones."""
    known = {**read_tasks(), **(extra or {})}
    if name not in known:
        raise unknown_task(name, known)
    return known[name]


def unknown_task(name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown task, which may be one of the user's file."""
    error = did_you_mean("task", name, known)
    return UnknownNameError(error.message, hint=f"{error.hint}; your tasks are in a file: --task-file tasks.toml")


def _task(name: str, entry: Any, path: Path, shipped: Mapping[str, Task]) -> Task:
    where = f"{path}, task {name}"
    check_name("task", name)
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: expected a table, found {entry!r}", hint=f"write [{name}] and its settings below")
    placed = {key: path.parent / value for key in ("test", "train") if isinstance(value := entry.get(key), str)}
    base = dict(shipped[name]) if name in shipped and "labels" not in entry else {}
    try:
        return Task(**{**base, **entry, **placed, "name": name})
    except ValidationError as error:
        raise config_error(error, Task, f"{where}: ") from error
