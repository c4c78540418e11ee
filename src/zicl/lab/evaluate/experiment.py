"""The strict configuration of an evaluation: a TOML file, or the same keys as options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from zicl._util.files import read_toml
from zicl._util.registry import did_you_mean
from zicl._util.validation import config_error
from zicl.config import PromptSettings, Scoring
from zicl.exceptions import ConfigError
from zicl.lab.evaluate.methods import (
    EXPERIMENT_METHODS,
    ExperimentMethod,
    Inference,
    check_definitions,
    get_experiment_method,
)
from zicl.lab.evaluate.tasks import read_tasks, unknown_task

PAPER_SEEDS = (100, 13, 21, 42, 87)
PAPER_TASKS = ("CR", "Amz", "Amz5", "Yelp", "Yelp5", "Tweet", "MR", "SST2", "SST5")
PAPER_METHODS = ("majority", "no-demos", "random-inputs", "naive", "z-icl", "icl-gold", "icl-random")
# Keys whose command-line option has another name.
_OPTIONS = {"inferences": "--inference", "scoring": "--set scoring", "prompt": "--set prompt"}


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DomainRecipe(_Strict):
    """What a domain of a corpus is read from, and what sets it apart from the others."""

    paths: tuple[str, ...] = Field(min_length=1)
    # The column or key of the text.
    text_column: str | None = None
    # Its own maximum number of paragraphs.
    max_paragraphs: int | None = Field(None, ge=1)


def _domain(value: Any) -> Any:
    if isinstance(value, str):
        return {"paths": (value,)}
    return {"paths": tuple(value)} if isinstance(value, list) else value


class CorpusRecipe(_Strict):
    """The path of the corpus; with ``domains``, how to build it if it does not exist.

    A domain is a path, several paths, or a table with ``paths`` and what is different for it.

    >>> CorpusRecipe(path="c.zicl", domains={"film": "film.jsonl"}).domains["film"].paths
    ('film.jsonl',)
    """

    path: str
    domains: dict[str, Annotated[DomainRecipe, BeforeValidator(_domain)]] = {}
    max_paragraphs: int = Field(10_000_000, ge=1)
    seed: int = 0
    splitter: str = "sentencex"
    encoder: str = "bge-small-en-v1.5"
    text_column: str = "text"

    def located(self, locate: Callable[[str], str]) -> Self:
        """Return the recipe with other paths for its files; data sets of the hub stay as they are."""

        def moved(domain: DomainRecipe) -> DomainRecipe:
            paths = tuple(path if path.startswith("hf:") else locate(path) for path in domain.paths)
            return domain.model_copy(update={"paths": paths})

        return self.model_copy(update={"domains": {name: moved(domain) for name, domain in self.domains.items()}})

    @property
    def domain_paragraphs(self) -> dict[str, int]:
        """The maximum numbers of paragraphs of domains that have their own."""
        limits = {name: domain.max_paragraphs for name, domain in self.domains.items()}
        return {name: limit for name, limit in limits.items() if limit is not None}

    @property
    def text_columns(self) -> dict[str, str]:
        """The columns or keys of the text of domains that have their own."""
        return {name: domain.text_column for name, domain in self.domains.items() if domain.text_column}


def _recipe(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class Experiment(_Strict):
    """Tasks × methods × inferences × seeds, and everything else that rows depend on."""

    tasks: tuple[str, ...] = PAPER_TASKS
    methods: tuple[str, ...] = PAPER_METHODS
    inferences: tuple[Inference, ...] = ("channel", "direct")
    templates: tuple[Literal["task", "none"], ...] = ("task",)
    seeds: tuple[int, ...] | dict[Inference, tuple[int, ...]] = PAPER_SEEDS
    examples: int = Field(2000, ge=1)
    lm: str = "smollm2-135m"
    corpus: Annotated[CorpusRecipe | None, BeforeValidator(_recipe)] = None
    # A folder with what the authors published, instead of a corpus: ``released`` says what is in it.
    demonstrations: str | None = None
    # The encoder with which a recipe's corpus is built, instead of the recipe's; and that of methods without a corpus.
    encoder: str | None = None
    k: int = Field(16, ge=1)
    # Where "physical" finds the sentence beside a nearest one, as in ``Retrieval``, for all methods.
    neighbours: Literal["paragraph", "domain"] = "paragraph"
    prompt: PromptSettings = PromptSettings()
    scoring: Scoring = Scoring()
    batch: int = Field(32, ge=1)
    define: dict[str, ExperimentMethod] = {}
    task_file: str | None = None
    data: dict[str, str] = {}
    train: dict[str, str] = {}
    notes: dict[str, str] = {}
    covered: dict[str, bool] = {}

    @field_validator("tasks", "methods", "inferences", "templates")
    @classmethod
    def _nonempty_and_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or len(set(value)) < len(value):
            raise ValueError("name at least one, and each once")
        return value

    def model_post_init(self, context: Any) -> None:
        """Check all names before anything is loaded."""
        check_definitions(self.define)
        self._check_tasks_named()
        self._check_seeds()
        for name in self.methods:
            get_experiment_method(name, self.define)
        if self.define:
            from zicl.retrieve.strategies.base import RETRIEVERS

            for method in self.define.values():
                if method.retrieval.method not in RETRIEVERS.names():
                    raise did_you_mean("retriever", method.retrieval.method, RETRIEVERS.names())
        if "inference" in self.scoring.model_fields_set:
            raise ConfigError("scoring.inference is not set here", hint="name the inferences: inferences = ['direct']")
        if "experts" in self.scoring.model_fields_set:
            raise ConfigError(
                "scoring.experts is not set here", hint="a method has them: [define.NAME], experts = ['prompt', …]"
            )
        if self.prompt.template != "auto":
            raise ConfigError("prompt.template is not set here", hint="a task has its template; see templates")
        without_source = self.corpus is None and self.demonstrations is None
        if without_source and any(get_experiment_method(name, self.define).needs_corpus for name in self.methods):
            needing = [name for name in self.methods if get_experiment_method(name, self.define).needs_corpus]
            raise ConfigError(
                f"no corpus was named, from which to take the demonstrations of: {', '.join(needing)}",
                hint="--corpus reviews.zicl (zicl corpus build), or leave these methods out",
            )

    def _check_seeds(self) -> None:
        unseeded = [n for n in self.inferences if isinstance(self.seeds, dict) and not self.seeds.get(n)]
        if unseeded or not self.seeds:
            raise ConfigError(f"no seeds for {', '.join(unseeded) or 'any inference'}", hint="seeds = [100, 13]")
        every = self.seeds.values() if isinstance(self.seeds, dict) else [self.seeds]
        if any(len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**31 for seed in seeds) for seeds in every):
            raise ConfigError("seeds are whole numbers from 0 to 2147483647, each once", hint="seeds = [100, 13]")

    def _check_tasks_named(self) -> None:
        """Check that no file, note or coverage is given for an unknown task, where it would be ignored silently."""
        defined = read_tasks(Path(self.task_file)) if self.task_file else {}
        known = {*self.tasks, *read_tasks(), *defined}
        for name in (*self.data, *self.train, *self.notes, *self.covered):
            if name not in known:
                raise unknown_task(name, known)

    def seeds_of(self, inference: str) -> tuple[int, ...]:
        """Return the seeds of an inference; a control, which has none, gets all seeds."""
        if not isinstance(self.seeds, dict):
            return self.seeds
        if inference in self.seeds:
            return self.seeds[inference]
        return tuple(dict.fromkeys(seed for seeds in self.seeds.values() for seed in seeds))

    def method(self, name: str) -> ExperimentMethod:
        """Return a method by name, with the experiment's k and neighbours unless its definition sets them."""
        method = get_experiment_method(name, self.define)
        retrieval, general = method.retrieval, dict[str, Any]()
        if retrieval.k and (name in EXPERIMENT_METHODS or "k" not in retrieval.model_fields_set):
            general["k"] = self.k
        if retrieval.k and retrieval.method == "physical" and "neighbours" not in retrieval.model_fields_set:
            general["neighbours"] = self.neighbours
        return method.model_copy(update={"retrieval": retrieval.model_copy(update=general)}) if general else method


def read_experiment(path: Path | None, options: Mapping[str, Any]) -> Experiment:
    """Read the experiment of a TOML file, overridden by options. Paths in the file are relative to it."""
    table: dict[str, Any] = {}
    if path is not None:
        missing = "zicl evaluate --help shows how to do without one"
        form = "docs/reference/experiments.md shows its keys"
        table = read_toml(path, ConfigError, missing=missing, form=form)
        resolve_paths(table, path.parent)
    for name, value in options.items():
        before = table.get(name, {})
        if not isinstance(value, dict):
            table[name] = value
        elif isinstance(before, dict):
            # A value in the file that should be a table stays, and is refused below.
            table[name] = {**before, **value}
    if isinstance(table.get("task_file"), str) and table["task_file"] and "tasks" not in table:
        table["tasks"] = list(read_tasks(Path(table["task_file"])))
    try:
        return Experiment(**table)
    except ValidationError as error:
        names = {name: _OPTIONS.get(name, f"--{name.replace('_', '-')}") for name in options}
        raise config_error(error, Experiment, f"{path}: " if path else "", names) from error


def resolve_paths(table: dict[str, Any], folder: Path) -> None:
    """Make the paths of a table relative to a folder, that of the file it was read from."""

    def resolved(value: str) -> str:
        return str(folder / value)

    corpus = _recipe(table.get("corpus"))
    if isinstance(corpus, dict) and isinstance(corpus.get("path"), str):
        table["corpus"] = {**corpus, "path": resolved(corpus["path"])}
    if isinstance(table.get("task_file"), str):
        table["task_file"] = resolved(table["task_file"])
    if isinstance(table.get("demonstrations"), str):
        table["demonstrations"] = resolved(table["demonstrations"])
    for name in ("data", "train"):
        if isinstance(table.get(name), dict):
            placed = {task: resolved(str(value)) for task, value in table[name].items() if value != "hub"}
            table[name] = {**table[name], **placed}
