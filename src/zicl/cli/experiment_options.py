"""The options that describe an experiment, shared by evaluate, verify and study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl._util.process import go_offline, use_threads
from zicl.cli.model_options import RemoteOptions, check_loading
from zicl.cli.options import OfflineOption
from zicl.cli.parsing import parse_names, parse_settings
from zicl.cli.preflight import preflight
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.lab.evaluate.context import ExperimentContext
    from zicl.lab.evaluate.experiment import Experiment

_SUFFIXES = (".jsonl", ".csv", ".parquet", ".jsonl.gz", ".csv.gz", ".jsonl.zst")


@dataclass(frozen=True)
class DataOptions(RemoteOptions):
    """The options of every command that runs experiments."""

    tasks: Annotated[
        str | None, typer.Option("--tasks", help="Comma-separated; 'zicl tasks' lists them. [the paper's nine]")
    ] = None
    inferences: Annotated[
        str | None,
        typer.Option("--inference", help="Comma-separated: channel, direct, both (the two joined). [channel,direct]"),
    ] = None
    seeds: Annotated[str | None, typer.Option("--seeds", help="Comma-separated. [100,13,21,42,87]")] = None
    examples: Annotated[int | None, typer.Option("--examples", help="Maximum examples per task. [2000]")] = None
    k: Annotated[int | None, typer.Option("--k", help="Number of demonstrations. [16]")] = None
    corpus: Annotated[str | None, typer.Option("--corpus", "-c", help="A corpus built with 'zicl corpus build'.")] = (
        None
    )
    demonstrations: Annotated[
        str | None,
        typer.Option("--demonstrations", help="A folder with the sentences and examples that the authors published."),
    ] = None
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", help="The encoder of a recipe's corpus, and of methods without one."),
    ] = None
    lm: Annotated[
        str | None, typer.Option("--lm", help="Catalog name, hf:ID, folder, gguf:FILE or http://HOST/v1#ID.")
    ] = None
    data: Annotated[list[str] | None, typer.Option("--data", help="TASK=FILE of test examples.")] = None
    train: Annotated[list[str] | None, typer.Option("--train", help="TASK=FILE of training examples.")] = None
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="A folder with TASK/test.jsonl, TASK/train.jsonl, and a recipe's corpora."),
    ] = None
    task_file: Annotated[str | None, typer.Option("--task-file", help="A TOML file that defines more tasks.")] = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="scoring.NAME=VALUE or prompt.NAME=VALUE: scoring.device=cuda, …; may be repeated."),
    ] = None
    threads: Annotated[int | None, typer.Option("--threads", help="CPU threads to use.")] = None
    offline: OfflineOption = False

    def __post_init__(self) -> None:
        # A mistake is found at once, not when examples are read and models loaded.
        preflight(corpus=self.corpus, lm=self.lm, encoder=self.encoder)

    def given(self) -> dict[str, Any]:
        """Return the keys of an experiment that options set."""
        given: dict[str, Any] = {
            "tasks": parse_names(self.tasks),
            "inferences": parse_names(self.inferences),
            "seeds": _numbers(self.seeds),
            "examples": self.examples,
            "k": self.k,
            "corpus": self.corpus,
            "demonstrations": self.demonstrations,
            "encoder": self.encoder,
            "lm": self.lm,
            "task_file": self.task_file,
            "data": _pairs("--data", self.data),
            "train": _pairs("--train", self.train),
            **parse_settings(self.settings, ("scoring", "prompt")),
        }
        check_loading(self.lm, given.get("scoring", ()))
        return {name: value for name, value in given.items() if value not in (None, {})}

    def placed(self, experiment: Experiment, file: Path | None) -> Experiment:
        """Return the experiment with its data where --data-dir says, else beside its file."""
        if self.data_dir is None:
            return experiment if file is None else _recipe_below(experiment, file.parent)
        if not self.data_dir.is_dir():
            raise UsageError(f"--data-dir: there is no folder {self.data_dir}")
        return in_data_dir(experiment, self.data_dir)

    def begin(self) -> None:
        """Set what has to be set before anything is loaded."""
        if self.offline:
            go_offline()
        use_threads(self.threads)


@dataclass(frozen=True)
class ExperimentOptions(DataOptions):
    """The options of commands that run one experiment."""

    experiment: Annotated[Path | None, typer.Argument(help="An experiment.toml; options override it.")] = None
    methods: Annotated[str | None, typer.Option("--methods", help="Comma-separated. [those of the paper]")] = None
    templates: Annotated[str | None, typer.Option("--templates", help="Comma-separated: task, none. [task]")] = None

    def given(self) -> dict[str, Any]:
        """Return the keys of an experiment that options set."""
        more = {"methods": parse_names(self.methods), "templates": parse_names(self.templates)}
        return {**super().given(), **{name: value for name, value in more.items() if value is not None}}

    def read(self) -> Experiment:
        """Return the experiment, checked; nothing is loaded."""
        from zicl.lab.evaluate.experiment import read_experiment

        experiment = self.placed(read_experiment(self.experiment, self.given()), self.experiment)
        check_loading(experiment.lm, experiment.scoring.model_fields_set)
        return experiment

    def load(self, report: ProgressReport) -> ExperimentContext:
        """Return the experiment with its examples read, and a model behind a server opened."""
        from zicl.lab.evaluate.context import ExperimentContext

        experiment = self.read()
        self.begin()
        lm = self.language_model(experiment.lm, offline=self.offline)
        return ExperimentContext(
            experiment, lm=None if isinstance(lm, str) else lm, offline=self.offline, report=report
        )

    def plan(self, report: ProgressReport) -> ExperimentContext:
        """Return the same for workers that compute elsewhere: a model behind a server is not opened here."""
        from zicl.lab.evaluate.context import ExperimentContext

        experiment = self.read()
        self.begin()
        return ExperimentContext(experiment, offline=self.offline, report=report)


def in_data_dir(experiment: Experiment, folder: Path) -> Experiment:
    """Return the experiment with the files of a folder; files that were named take precedence."""
    found: dict[str, dict[str, str]] = {"data": {}, "train": {}}
    for task in experiment.tasks:
        for kind, name in (("data", "test"), ("train", "train")):
            path = _find(folder, task, name)
            if path is not None:
                found[kind][task] = path
    changes: dict[str, Any] = {kind: {**paths, **getattr(experiment, kind)} for kind, paths in found.items()}
    return _recipe_below(experiment.model_copy(update=changes), folder)


def _recipe_below(experiment: Experiment, folder: Path) -> Experiment:
    """Resolve the files of the corpus recipe against a folder; hub data sets stay as they are."""
    if experiment.corpus is None:
        return experiment
    located = experiment.corpus.located(lambda path: str(folder / path))
    return experiment.model_copy(update={"corpus": located})


def _find(folder: Path, task: str, name: str) -> str | None:
    for place in (folder / task, folder / "eval" / task):
        for suffix in _SUFFIXES:
            if (place / f"{name}{suffix}").is_file():
                return str(place / f"{name}{suffix}")
    return None


def _numbers(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"--seeds {text!r}: expected whole numbers", hint="for example --seeds 100,13") from error


def _pairs(option: str, entries: list[str] | None) -> dict[str, str]:
    pairs = {}
    for entry in entries or []:
        name, equals, path = entry.partition("=")
        if not equals or not path:
            raise UsageError(f"{option} {entry!r}: expected TASK=FILE", hint=f"for example {option} SST2=sst2.csv")
        pairs[name] = path
    return pairs
