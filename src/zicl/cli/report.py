"""zicl report: tables from results folders, figures, and one HTML page with everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl.cli.console import print_status
from zicl.cli.experiment_options import ExperimentOptions
from zicl.cli.options import JsonOption, with_options
from zicl.cli.parsing import parse_names
from zicl.cli.preflight import preflight
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.lab.report.build import EvaluationReport, Format
    from zicl.lab.report.html.page import BrowserOptions
    from zicl.lab.report.html.sources import PageFolders, SourceTexts

_SOURCES = ("experiment", "corpus", "demonstrations", "data", "train", "data_dir", "task_file")


@dataclass(frozen=True)
class PageOptions:
    """The options of the HTML page; all but the first need the first."""

    html: Annotated[
        Path | None,
        typer.Option("--html", help="One self-contained HTML file: tables, figures, studies, single predictions."),
    ] = None
    no_texts: Annotated[bool, typer.Option("--no-texts", help="HTML: show ids instead of texts.")] = False
    predictions: Annotated[
        int | None,
        typer.Option("--predictions", min=0, help="HTML: maximum predictions per cell. [200, and 10,000 in all]"),
    ] = None
    experiment: Annotated[
        Path | None, typer.Option("--experiment", help="HTML: the experiment.toml, which says where texts are.")
    ] = None
    corpus: Annotated[
        str | None, typer.Option("--corpus", "-c", help="HTML: the corpus, for the demonstrations' texts.")
    ] = None
    demonstrations: Annotated[
        str | None, typer.Option("--demonstrations", help="HTML: the folder of published files, for their examples.")
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

    def browsing(self) -> BrowserOptions:
        """Return what the page may show."""
        from zicl.lab.report.html.page import BrowserOptions

        return BrowserOptions(not self.no_texts, self.predictions)

    def texts(self, manifests: Sequence[dict[str, Any]]) -> SourceTexts:
        """Return the texts of the tasks in the results, as far as the options say where they are."""
        from zicl.lab.report.html.sources import SourceTexts, read_texts

        if not any(getattr(self, name) for name in _SOURCES):
            return SourceTexts()
        experiment = ExperimentOptions(
            experiment=self.experiment,
            tasks=",".join(self._known_tasks(manifests)) or None,
            # Only the place of its texts is needed: no method may require more.
            methods="majority",
            corpus=self.corpus,
            demonstrations=self.demonstrations,
            # Published files are of a number of demonstrations.
            k=manifests[0]["experiment"]["k"] if self.demonstrations and manifests else None,
            data=self.data,
            train=self.train,
            data_dir=self.data_dir,
            task_file=self.task_file,
        ).read()
        return read_texts(experiment, manifests)

    def unknown_tasks(self, manifests: Sequence[dict[str, Any]]) -> list[str]:
        """Return the tasks of the results that no table of tasks has: their texts are not looked up."""
        known = self._known_tasks(manifests)
        return [name for name in _named(manifests) if name not in known]

    def _known_tasks(self, manifests: Sequence[dict[str, Any]]) -> list[str]:
        """Return the tasks of the results that the tables of tasks have; the page shows ids for the others."""
        from zicl._util.files import read_toml
        from zicl.exceptions import ConfigError
        from zicl.lab.evaluate.tasks import read_tasks

        files = [Path(self.task_file)] if self.task_file else []
        if self.experiment is not None and not files:
            form = "see docs/reference/experiments.md"
            table = read_toml(self.experiment, ConfigError, missing="check the name", form=form)
            files += [self.experiment.parent / str(table["task_file"])] if table.get("task_file") else []
        known = {*read_tasks(), *(name for file in files for name in read_tasks(file))}
        return [name for name in _named(manifests) if name in known]


def _named(manifests: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for manifest in manifests for name in manifest["tasks"]))


class MetricName(StrEnum):
    """What the main table shows."""

    ACCURACY = "accuracy"
    MACRO_F1 = "macro-f1"


class Formats(StrEnum):
    """How the report is written."""

    MARKDOWN = "markdown"
    CSV = "csv"
    LATEX = "latex"
    JSON = "json"


class Comparisons(StrEnum):
    """Whose numbers to show beside ours."""

    PAPER = "paper"


class Calibrations(StrEnum):
    """What to subtract from the stored scores."""

    BATCH = "batch"


@with_options(PageOptions)
def report(
    options: PageOptions,
    results: Annotated[
        list[Path],
        typer.Argument(help="Results folders of 'zicl evaluate', one for each model; with --html also studies."),
    ],
    metric: Annotated[MetricName, typer.Option(help="What the main table shows.")] = MetricName.ACCURACY,
    compare: Annotated[Comparisons | None, typer.Option(help="Put the paper's numbers beside ours.")] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Methods that all others are compared with, separated by commas. [no-demos,icl-gold]"),
    ] = None,
    calibrate: Annotated[
        Calibrations | None,
        typer.Option(help="Subtract what a label gets on average over the test inputs; no gold label is read."),
    ] = None,
    shares: Annotated[
        bool, typer.Option("--shares", help="Also accuracy and macro-F1 on test rows drawn with other label shares.")
    ] = False,
    figures: Annotated[
        Path | None,
        typer.Option(help="A folder for reliability diagrams and risk–coverage curves, as SVG and PNG."),
    ] = None,
    form: Annotated[
        Formats | None,
        typer.Option("--format", help="csv has the main table alone, json everything. [markdown]"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file (.md, .csv, .tex, .json), or a folder for all four formats."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Print the main table, differences to baselines, predicted labels, copy rates and calibration."""
    if json_output and form not in (None, Formats.JSON):
        raise UsageError(f"--json and --format {form} were given", hint="leave one of them out")
    from zicl._util.files import write_text
    from zicl.lab.report.build import SUFFIXES, make_report

    preflight(figures=figures or options.html)
    chosen = Formats.JSON if json_output else form
    # First: a name that cannot be written should not cost a minute of bootstrap.
    targets = _targets(output, chosen, SUFFIXES)
    _check_places([*targets.values(), *filter(None, [options.html])], figures)
    found = None if options.html is None else _found(results)
    paths = results if found is None else found.results
    if found is not None and not paths:
        other = {"--metric": metric is not MetricName.ACCURACY, "--compare": compare, "--against": against}
        _check_for_studies({**other, "--calibrate": calibrate, "--shares": shares})
    made = None
    if paths or output is not None or chosen or figures is not None:
        made = make_report(
            paths,
            metric.value,
            compare=compare.value if compare else None,
            calibrate=calibrate.value if calibrate else None,
            shares=shares,
            against=parse_names(against) or (),
        )
    if found is not None:
        _write_page(options, found, made)
    if made is None:
        return
    for kind, path in targets.items():
        write_text(path, made.render(kind))
        print_status(f"written to {path}")
    if figures is not None:
        _draw(made, figures)
    # A page alone needs no tables on the screen.
    if output is None and (found is None or chosen):
        typer.echo(made.render((chosen or Formats.MARKDOWN).value), nl=False)


def _check_places(files: Sequence[Path], figures: Path | None) -> None:
    """Check that the files and the figures can be written."""
    for path in files:
        preflight(output=path)
    if figures is not None and figures.exists() and not figures.is_dir():
        raise UsageError(f"--figures {figures} is a file, and a folder was expected", hint="name a folder for them")


def _found(paths: list[Path]) -> PageFolders:
    from zicl.lab.report.html.sources import find_folders

    return find_folders(paths)


def _write_page(options: PageOptions, found: PageFolders, made: EvaluationReport | None) -> None:
    from zicl._util.files import write_text
    from zicl.lab.evaluate.store import ResultsFolder
    from zicl.lab.report.html.page import make_page

    if options.html is None:
        return
    folders = (*found.results, *(folder for study in found.studies for folder in study.results))
    manifests = [ResultsFolder.open(folder).manifest for folder in folders]
    texts = options.texts(manifests)
    write_text(options.html, make_page(found, made, texts, options.browsing()))
    print_status(f"written to {options.html}, {options.html.stat().st_size / 1e6:.1f} MB")
    if options.no_texts:
        return
    if not (texts.tests or texts.index):
        print_status("inputs and demonstrations go by their ids: --data-dir or --data and --corpus name their texts")
    if unknown := options.unknown_tasks(manifests):
        print_status(
            f"{', '.join(unknown)}: a task of your own is known by --task-file; without it its inputs go by their ids"
        )


def _draw(made: EvaluationReport, folder: Path) -> None:
    from zicl.lab.report.reliability import draw_figures

    written = draw_figures(made.results, folder)
    print_status(
        f"{len(written)} figures written to {folder}" if written else "no figure drawn: no prompt has rows yet"
    )


def _check_for_studies(given: Mapping[str, Any]) -> None:
    """Refuse options that do not change the tables of studies."""
    for option, value in given.items():
        if value:
            raise UsageError(
                f"{option} is for results, and these folders hold studies only: their tables show accuracy",
                hint="leave it out, or name a folder of zicl evaluate",
            )


def _targets(output: Path | None, chosen: Formats | None, suffixes: dict[Format, str]) -> dict[Format, Path]:
    """Return the files to write, by format."""
    if output is None:
        return {}
    if output.is_dir() or not output.suffix:
        wanted: list[Format] = [chosen.value] if chosen else list(suffixes)
        return {kind: output / f"report{suffixes[kind]}" for kind in wanted}
    if chosen:
        return {chosen.value: output}
    for kind, suffix in suffixes.items():
        if suffix == output.suffix:
            return {kind: output}
    raise UsageError(
        f"{output}: the name does not say the format",
        hint=f"end it in {', '.join(suffixes.values())}, or give --format",
    )
