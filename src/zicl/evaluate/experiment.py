"""What an evaluation runs, as strict configuration: TOML, or the same keys as options."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from zicl.config import PromptSettings, Scoring
from zicl.evaluate.methods import METHODS, Method, check_definitions, get_method
from zicl.evaluate.tasks import read_tasks
from zicl.exceptions import ConfigError, UsageError

PAPER_SEEDS = (100, 13, 21, 42, 87)
PAPER_TASKS = ("CR", "Amz", "Amz5", "Yelp", "Yelp5", "Tweet", "MR", "SST2", "SST5")
PAPER_METHODS = ("majority", "no-demos", "random-inputs", "naive", "z-icl", "icl-gold", "icl-random")
Inference = Literal["direct", "channel"]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CorpusRecipe(_Strict):
    """Where the corpus is; with ``domains`` it is built there if it is not yet."""

    path: str
    domains: dict[str, str] = {}
    max_paragraphs: int = Field(10_000_000, ge=1)
    seed: int = 0
    splitter: str = "sentencex"
    encoder: str = "all-minilm-l6-v2"


class Experiment(_Strict):
    """Tasks × methods × inferences × seeds, and all that decides a row of the result."""

    tasks: tuple[str, ...] = PAPER_TASKS
    methods: tuple[str, ...] = PAPER_METHODS
    inferences: tuple[Inference, ...] = ("channel", "direct")
    templates: tuple[Literal["task", "none"], ...] = ("task",)
    seeds: tuple[int, ...] | dict[Inference, tuple[int, ...]] = PAPER_SEEDS
    examples: int = Field(2000, ge=1)
    lm: str = "smollm2-135m"
    corpus: str | CorpusRecipe | None = None
    k: int = Field(16, ge=1)
    prompt: PromptSettings = PromptSettings()
    scoring: Scoring = Scoring()
    batch: int = Field(32, ge=1)
    define: dict[str, Method] = {}
    task_file: str | None = None
    data: dict[str, str] = {}
    train: dict[str, str] = {}
    notes: dict[str, str] = {}
    covered: dict[str, bool] = {}

    @field_validator("tasks", "methods", "inferences", "templates")
    @classmethod
    def _some_and_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or len(set(value)) < len(value):
            raise ValueError("name at least one, and each once")
        return value

    def model_post_init(self, context: Any) -> None:
        """Names are checked before anything is loaded."""
        check_definitions(self.define)
        for name in self.methods:
            get_method(name, self.define)
        if "inference" in self.scoring.model_fields_set:
            raise ConfigError("scoring.inference is not set here", hint="name the inferences: inferences = ['direct']")
        if self.prompt.template != "auto":
            raise ConfigError("prompt.template is not set here", hint="a task has its template; see templates")
        unseeded = [n for n in self.inferences if isinstance(self.seeds, dict) and not self.seeds.get(n)]
        if unseeded or not self.seeds:
            raise ConfigError(f"no seeds for {', '.join(unseeded) or 'any inference'}", hint="seeds = [100, 13]")
        if self.corpus is None and any(get_method(name, self.define).needs_corpus for name in self.methods):
            needing = [name for name in self.methods if get_method(name, self.define).needs_corpus]
            raise ConfigError(
                f"no corpus was named, from which to take the demonstrations of: {', '.join(needing)}",
                hint="--corpus reviews.zicl (zicl corpus build), or leave these methods out",
            )

    def seeds_of(self, inference: str) -> tuple[int, ...]:
        """The seeds of an inference; a control without one gets all of them."""
        if not isinstance(self.seeds, dict):
            return self.seeds
        if inference in self.seeds:
            return self.seeds[inference]
        return tuple(dict.fromkeys(seed for seeds in self.seeds.values() for seed in seeds))

    def method(self, name: str) -> Method:
        """A method by name, with the experiment's k."""
        found = get_method(name, self.define)
        if name in METHODS and found.retrieval.k:
            return found.model_copy(update={"retrieval": found.retrieval.model_copy(update={"k": self.k})})
        return found


def read_experiment(path: Path | None, options: Mapping[str, Any]) -> Experiment:
    """The experiment of a TOML file, with options over it. Paths in the file are relative to it."""
    table: dict[str, Any] = {}
    if path is not None:
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ConfigError(
                f"there is no file {path}", hint="zicl evaluate --help shows how to do without"
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not TOML: {error}") from error
        _resolve_paths(table, path.parent)
    for name, value in options.items():
        table[name] = {**table.get(name, {}), **value} if isinstance(value, dict) else value
    if table.get("task_file") and "tasks" not in table:
        table["tasks"] = list(read_tasks(Path(table["task_file"])))
    try:
        return Experiment(**table)
    except ValidationError as error:
        raise _readable(error, path) from error


def _resolve_paths(table: dict[str, Any], folder: Path) -> None:
    def resolved(value: str) -> str:
        return str(folder / value)

    if isinstance(table.get("corpus"), str):
        table["corpus"] = resolved(table["corpus"])
    elif isinstance(table.get("corpus"), dict) and isinstance(table["corpus"].get("path"), str):
        table["corpus"]["path"] = resolved(table["corpus"]["path"])
    if isinstance(table.get("task_file"), str):
        table["task_file"] = resolved(table["task_file"])
    for name in ("data", "train"):
        if isinstance(table.get(name), dict):
            table[name] = {task: resolved(str(value)) for task, value in table[name].items()}


def _readable(error: ValidationError, path: Path | None) -> ConfigError:
    """Every wrong key or value, a line each."""
    where = f"{path}: " if path else ""
    lines = []
    for item in error.errors():
        own = item.get("ctx", {}).get("error")
        if isinstance(own, UsageError):
            return ConfigError(where + own.message, hint=own.hint)
        key = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            close = difflib.get_close_matches(key, Experiment.model_fields, n=1)
            lines.append(f"{key}: there is no such key" + (f"; did you mean {close[0]!r}?" if close else ""))
        else:
            lines.append(f"{key}: {item['msg'].removeprefix('Value error, ')} (given: {item['input']!r})")
    keys = ", ".join(Experiment.model_fields)
    return ConfigError(where + "; ".join(dict.fromkeys(lines)), hint=f"an experiment's keys are: {keys}")
