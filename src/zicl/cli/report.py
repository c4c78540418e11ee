"""zicl report: tables from results folders, and one page with everything."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl.cli._options import JsonOption
from zicl.cli._page import PageChoice
from zicl.cli._parse import parse_names
from zicl.cli._progress import say
from zicl.cli._takes import takes
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.lab.report.build import Format, Report
    from zicl.lab.report.html.folders import Found


class Metrics(StrEnum):
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
    """Whose numbers stand beside ours."""

    PAPER = "paper"


class Calibrations(StrEnum):
    """What is taken off the stored scores."""

    BATCH = "batch"


@takes(PageChoice)
def report(
    choice: PageChoice,
    results: Annotated[
        list[Path],
        typer.Argument(help="Results folders of 'zicl evaluate', one for each model; with --html also studies."),
    ],
    metric: Annotated[Metrics, typer.Option(help="What the main table shows.")] = Metrics.ACCURACY,
    compare: Annotated[Comparisons | None, typer.Option(help="Put the paper's numbers beside ours.")] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Methods that all others are compared with, separated by commas. [no-demos,icl-gold]"),
    ] = None,
    calibrate: Annotated[
        Calibrations | None,
        typer.Option(help="Take off what a label gets on average over the test inputs; no gold label is read."),
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
    """Print the main table, differences to baselines, predicted labels, copy rates and what probabilities claim."""
    if json_output and form not in (None, Formats.JSON):
        raise UsageError(f"--json and --format {form} were given", hint="leave one of them out")
    from zicl._util.files import write_text
    from zicl.lab.report.build import SUFFIXES, make_report

    chosen = Formats.JSON if json_output else form
    # Before any work: a name that cannot be written should not cost a minute of bootstrap.
    targets = _targets(output, chosen, SUFFIXES)
    if figures is not None and figures.exists() and not figures.is_dir():
        raise UsageError(f"--figures {figures} is a file, and a folder was expected", hint="name a folder for them")
    found = None if choice.html is None else _found(results)
    paths = results if found is None else found.results
    if found is not None and not paths:
        other = {"--metric": metric is not Metrics.ACCURACY, "--compare": compare, "--against": against}
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
        _write_page(choice, found, made)
    if made is None:
        return
    for kind, path in targets.items():
        write_text(path, made.render(kind))
        say(f"written to {path}")
    if figures is not None:
        _draw(made, figures)
    # Who asks for a page alone wants no tables on the screen.
    if output is None and (found is None or chosen):
        typer.echo(made.render((chosen or Formats.MARKDOWN).value), nl=False)


def _found(paths: list[Path]) -> Found:
    from zicl.lab.report.html.folders import find

    return find(paths)


def _write_page(choice: PageChoice, found: Found, made: Report | None) -> None:
    from zicl._util.files import write_text
    from zicl.lab.evaluate.store import Results
    from zicl.lab.report.html.build import make_page

    if choice.html is None:
        return
    folders = (*found.results, *(folder for study in found.studies for folder in study.results))
    manifests = [Results.open(folder).manifest for folder in folders]
    texts = choice.texts(manifests)
    write_text(choice.html, make_page(found, made, texts, choice.browsing()))
    say(f"written to {choice.html}, {choice.html.stat().st_size / 1e6:.1f} MB")
    if choice.no_texts:
        return
    if not (texts.tests or texts.index):
        say("inputs and demonstrations go by their ids: --data-dir or --data and --corpus name their texts")
    if unknown := choice.unknown_tasks(manifests):
        say(f"{', '.join(unknown)}: a task of your own is known by --task-file; without it its inputs go by their ids")


def _draw(made: Report, folder: Path) -> None:
    from zicl.lab.report.figures import draw_figures

    written = draw_figures(made.results, folder)
    say(f"{len(written)} figures written to {folder}" if written else "no figure drawn: no prompt has rows yet")


def _check_for_studies(given: Mapping[str, Any]) -> None:
    """Studies have tables of their own, which these options do not change."""
    for option, value in given.items():
        if value:
            raise UsageError(
                f"{option} is for results, and these folders hold studies only: their tables show accuracy",
                hint="leave it out, or name a folder of zicl evaluate",
            )


def _targets(output: Path | None, chosen: Formats | None, suffixes: dict[Format, str]) -> dict[Format, Path]:
    """The files to write, by format."""
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
        f"{output}: the format cannot be told from the name",
        hint=f"end it in {', '.join(suffixes.values())}, or give --format",
    )
