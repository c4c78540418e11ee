"""The options of a report's HTML page: where it goes, and where its texts are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl.cli._experiment import ExperimentChoice
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.lab.report.html.build import Browsing
    from zicl.lab.report.html.texts import Texts

_SOURCES = ("experiment", "corpus", "data", "train", "data_dir", "task_file")


@dataclass(frozen=True)
class PageChoice:
    """What the options say; all but the first need the first."""

    html: Annotated[
        Path | None,
        typer.Option("--html", help="One self-contained HTML file: tables, figures, studies, single predictions."),
    ] = None
    no_texts: Annotated[bool, typer.Option("--no-texts", help="HTML: ids in the place of texts.")] = False
    predictions: Annotated[
        int | None,
        typer.Option("--predictions", min=0, help="HTML: at most so many of each cell. [200, and 10,000 in all]"),
    ] = None
    experiment: Annotated[
        Path | None, typer.Option("--experiment", help="HTML: the experiment.toml, which says where texts are.")
    ] = None
    corpus: Annotated[
        str | None, typer.Option("--corpus", "-c", help="HTML: the corpus, for the demonstrations' texts.")
    ] = None
    data: Annotated[list[str] | None, typer.Option("--data", help="HTML: TASK=FILE of test examples.")] = None
    train: Annotated[list[str] | None, typer.Option("--train", help="HTML: TASK=FILE of training examples.")] = None
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="HTML: a folder with TASK/test.jsonl and TASK/train.jsonl.")
    ] = None
    task_file: Annotated[str | None, typer.Option("--task-file", help="HTML: a TOML file with tasks of your own.")] = (
        None
    )

    def __post_init__(self) -> None:
        if self.html is None:
            given = [field.name for field in fields(self) if getattr(self, field.name) not in (None, False, [])]
            if given:
                raise UsageError(f"--{given[0].replace('_', '-')} is for a page", hint="name it: --html report.html")
        elif self.html.is_dir():
            raise UsageError(f"--html {self.html} is a folder, and a file was expected", hint="--html report.html")

    def browsing(self) -> Browsing:
        """What the page may show."""
        from zicl.lab.report.html.build import Browsing

        return Browsing(not self.no_texts, self.predictions)

    def texts(self, manifests: Sequence[dict[str, Any]]) -> Texts:
        """The texts of the tasks in the results, as far as the options say where they are."""
        from zicl.lab.report.html.texts import Texts, read_texts

        if not any(getattr(self, name) for name in _SOURCES):
            return Texts()
        experiment = ExperimentChoice(
            experiment=self.experiment,
            tasks=",".join(self._known_tasks(manifests)) or None,
            # What is asked of an experiment here is only where its texts are: no method may need more.
            methods="majority",
            corpus=self.corpus,
            data=self.data,
            train=self.train,
            data_dir=self.data_dir,
            task_file=self.task_file,
        ).read()
        return read_texts(experiment, manifests)

    def unknown_tasks(self, manifests: Sequence[dict[str, Any]]) -> list[str]:
        """The tasks of the results that no table of tasks has: their texts are not looked up."""
        known = self._known_tasks(manifests)
        return [name for name in _named(manifests) if name not in known]

    def _known_tasks(self, manifests: Sequence[dict[str, Any]]) -> list[str]:
        """The tasks of the results that the tables of tasks have; others stay ids, which the page says."""
        from zicl._util.files import read_toml
        from zicl.exceptions import ConfigError
        from zicl.lab.evaluate.tasks import read_tasks

        files = [Path(self.task_file)] if self.task_file else []
        if self.experiment is not None and not files:
            table = read_toml(self.experiment, ConfigError, missing="check the name", form="see docs/EVALUATION.md")
            files += [self.experiment.parent / str(table["task_file"])] if table.get("task_file") else []
        known = {*read_tasks(), *(name for file in files for name in read_tasks(file))}
        return [name for name in _named(manifests) if name in known]


def _named(manifests: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for manifest in manifests for name in manifest["tasks"]))
