"""The settings of studies: a TOML file with the keys of an experiment, and a table per study with overrides.

The more specific setting wins: the file's general keys, then the part's, then ``[study.NAME]``, then
``[study.NAME.parts.PART]``, then command-line options. ``[study.NAME.options]`` holds the study's options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zicl._util.files import read_toml
from zicl._util.registry import did_you_mean
from zicl._util.validation import config_error
from zicl.exceptions import ConfigError
from zicl.lab.evaluate.experiment import Experiment, resolve_paths
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.evaluate.tasks import read_tasks
from zicl.lab.study.base import Study, StudyOptions, StudyPart
from zicl.lab.study.registry import NAMES

# Keys of an experiment that a study sets.
_SET_BY_STUDY = ("methods", "define")
_FORM = "docs/how-to/studies.md shows its keys"


@dataclass(frozen=True)
class StudySettings:
    """The general keys of a file, its tables by study, and the overrides of the command line.

    ``source`` names the file at the beginning of error messages.
    """

    table: Mapping[str, Any] = field(default_factory=dict)
    studies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    def options(self, study: Study) -> StudyOptions:
        """Return the validated options of a study."""
        try:
            return study.options(**self.studies.get(study.name, {}).get("options", {}))
        except ValidationError as error:
            raise config_error(error, study.options, f"{self.source}options of {study.name}: ") from error

    def experiment(self, study: Study, part: StudyPart) -> Experiment:
        """Return the experiment of one part, with all settings merged."""
        for_study = {key: value for key, value in self.studies.get(study.name, {}).items() if key != "options"}
        for_part = for_study.pop("parts", {}).get(part.name, {})
        table = deep_merge(self.table, part.settings, for_study, for_part, self.overrides)
        tasks: tuple[str, ...] = study.tasks
        if isinstance(table.get("task_file"), str) and table["task_file"]:
            tasks = tuple(read_tasks(Path(table["task_file"])))
        defaults = {"tasks": tasks, "inferences": study.inferences}
        defined = {name: method for name, method in part.methods.items() if EXPERIMENT_METHODS.get(name) != method}
        try:
            return Experiment(**deep_merge(defaults, table), methods=tuple(part.methods), define=defined)
        except ValidationError as error:
            raise config_error(error, Experiment, f"{self.source}{study.name}: ") from error

    def check_parts(self, study: Study, names: Sequence[str]) -> None:
        """Check that there are settings only for parts that the study has: others would be ignored silently."""
        for name in self.studies.get(study.name, {}).get("parts", {}):
            if name not in names:
                raise did_you_mean(f"part of the study {study.name}:", name, names)


def read_settings(path: Path | None, overrides: Mapping[str, Any]) -> StudySettings:
    """Read a settings file, if any; ``overrides`` win over it. Paths in the file are relative to it."""
    if path is None:
        return StudySettings(overrides=overrides)
    table = read_toml(path, ConfigError, missing="check the path given with --config", form=_FORM)
    studies = _check_tables(table.pop("study", {}), path, "study")
    experiments: list[dict[str, Any]] = [table, *studies.values()]
    for name, settings in studies.items():
        if name not in NAMES:
            raise did_you_mean("study", name, NAMES)
        _check_table(settings.get("options", {}), path, f"study.{name}.options")
        experiments += _check_tables(settings.get("parts", {}), path, f"study.{name}.parts").values()
    for settings in experiments:
        if wrong := [key for key in _SET_BY_STUDY if key in settings]:
            raise ConfigError(
                f"{path}: {wrong[0]} cannot be set, because each study defines its methods",
                hint="leave it out; zicl evaluate runs any methods",
            )
        resolve_paths(settings, path.parent)
    return StudySettings(table, studies, overrides, f"{path}: ")


def _check_tables(value: Any, path: Path, name: str) -> dict[str, dict[str, Any]]:
    """Check that a value is a table of tables."""
    _check_table(value, path, name)
    for key, inner in value.items():
        _check_table(inner, path, f"{name}.{key}")
    return dict(value)


def _check_table(value: Any, path: Path, name: str) -> None:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {name} is not a table", hint=_FORM)


def deep_merge(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested tables; of two values for one key the later wins.

    >>> deep_merge({"k": 4, "prompt": {"bos": "on"}}, {"prompt": {"tokens_input": 9}})
    {'k': 4, 'prompt': {'bos': 'on', 'tokens_input': 9}}
    """
    merged: dict[str, Any] = {}
    for table in tables:
        for name, value in table.items():
            nested = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
            merged[name] = deep_merge(merged[name], value) if nested else value
    return merged
