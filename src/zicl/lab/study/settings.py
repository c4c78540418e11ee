"""All studies by name, the most telling first; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zicl._util.files import read_toml
from zicl._util.registry import Registry, did_you_mean
from zicl._util.validation import config_error
from zicl.exceptions import ConfigError
from zicl.lab.evaluate.experiment import Experiment, resolve_paths
from zicl.lab.evaluate.tasks import read_tasks
from zicl.lab.study.base import Study, StudyOptions, StudyPart

ALL = "reproduce"
# In the order in which they are run together.
NAMES = ("copying", "labels", "retrieval", "heads", "coverage", "corpus-size", "format", "order")
STUDIES = Registry(
    "study",
    {
        "copying": "zicl.lab.study.copying:STUDY",
        "labels": "zicl.lab.study.labels:STUDY",
        "retrieval": "zicl.lab.study.retrieval:STUDY",
        "heads": "zicl.lab.study.heads:STUDY",
        "coverage": "zicl.lab.study.coverage:STUDY",
        "corpus-size": "zicl.lab.study.corpus_size:STUDY",
        "format": "zicl.lab.study.format:STUDY",
        "order": "zicl.lab.study.order:STUDY",
    },
)


def get_studies(name: str) -> list[Study]:
    """A study by name, or all of them."""
    if name == ALL:
        return [STUDIES.get(each) for each in NAMES]
    return [STUDIES.get(name)]


# -- The settings of studies: a TOML file with those of an experiment, and a table for each study that has its own.


_OWN = ("methods", "define")
_FORM = "docs/STUDIES.md shows its keys"


@dataclass(frozen=True)
class StudySettings:
    """What a file says, and over it what options say; ``where`` names the file in an error."""

    table: Mapping[str, Any] = field(default_factory=dict)
    studies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""

    def options(self, study: Study) -> StudyOptions:
        """The study's options, checked."""
        try:
            return study.options(**self.studies.get(study.name, {}).get("options", {}))
        except ValidationError as error:
            raise config_error(error, study.options, f"{self.where}options of {study.name}: ") from error

    def experiment(self, study: Study, part: StudyPart) -> Experiment:
        """One experiment: defaults, the file's general settings, the part's own, the file's for it, then options."""
        own = dict(self.studies.get(study.name, {}))
        own.pop("options", None)
        parts = own.pop("parts", {})
        asked = merged(self.table, part.settings, own, parts.get(part.name, {}), self.given)
        tasks: tuple[str, ...] = study.tasks
        if isinstance(asked.get("task_file"), str) and asked["task_file"]:
            tasks = tuple(read_tasks(Path(asked["task_file"])))
        usual = {"tasks": tasks, "inferences": study.inferences}
        try:
            return Experiment(**merged(usual, asked), **part.table)
        except ValidationError as error:
            raise config_error(error, Experiment, f"{self.where}{study.name}: ") from error

    def check_parts(self, study: Study, names: Sequence[str]) -> None:
        """Settings for a part that the study has not would be left unused without a word."""
        for name in self.studies.get(study.name, {}).get("parts", {}):
            if name not in names:
                raise did_you_mean(f"part of the study {study.name}:", name, names)


def read_settings(path: Path | None, given: Mapping[str, Any]) -> StudySettings:
    """The settings of a file, with options over them. Paths in the file are relative to it."""
    if path is None:
        return StudySettings(given=given)
    table = read_toml(path, ConfigError, missing="check the path given with --config", form=_FORM)
    studies = _tables(table.pop("study", {}), path, "study")
    for name in studies:
        if name not in NAMES:
            raise did_you_mean("study", name, NAMES)
    parts: list[dict[str, Any]] = [table, *studies.values()]
    for name, own in studies.items():
        _check_table(own.get("options", {}), path, f"study.{name}.options")
        parts += _tables(own.get("parts", {}), path, f"study.{name}.parts").values()
    for part in parts:
        wrong = [name for name in _OWN if name in part]
        if wrong:
            raise ConfigError(
                f"{path}: {wrong[0]} is set, and a study has methods of its own",
                hint="leave it out; zicl evaluate runs any methods",
            )
        resolve_paths(part, path.parent)
    return StudySettings(table, studies, given, f"{path}: ")


def _tables(value: Any, path: Path, name: str) -> dict[str, dict[str, Any]]:
    """A table of tables."""
    _check_table(value, path, name)
    for key, inner in value.items():
        _check_table(inner, path, f"{name}.{key}")
    return dict(value)


def _check_table(value: Any, path: Path, name: str) -> None:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {name} is no table", hint=_FORM)


def merged(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables over one another, those in them too.

    >>> merged({"k": 4, "prompt": {"bos": "on"}}, {"prompt": {"tokens_input": 9}})
    {'k': 4, 'prompt': {'bos': 'on', 'tokens_input': 9}}
    """
    found: dict[str, Any] = {}
    for table in tables:
        for name, value in table.items():
            both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
            found[name] = merged(found[name], value) if both else value
    return found
