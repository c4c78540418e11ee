"""zicl check: sample, score."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl._util.counts import counted
from zicl.cli.console import people_console, print_json, print_status
from zicl.cli.options import JsonOption
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.apps.check.score import CheckReport, WeightedEstimate
    from zicl.apps.check.sheet import SheetFormat

_FORMATS = "--format table, or --format label-studio, with or without --blind"

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Estimate how accurate the labels are from a small sample that you label by hand."""


@app.command()
def sample(
    output: Annotated[Path, typer.Argument(help="A file that 'zicl classify' wrote.")],
    sheet: Annotated[Path, typer.Option("--output", "-o", help="The .csv or .xlsx file to label by hand, or .json.")],
    rows: Annotated[int, typer.Option(min=1, help="How many rows to label.")] = 100,
    seed: Annotated[int, typer.Option(help="Decides which rows.")] = 0,
    text_column: Annotated[str | None, typer.Option(help="The column that holds the text. [as classified]")] = None,
    id_column: Annotated[str | None, typer.Option(help="The column that names a row. [as classified]")] = None,
    pair_column: Annotated[
        str | None, typer.Option(help="The column that holds the second text of a pair. [as classified]")
    ] = None,
    options_column: Annotated[
        str | None, typer.Option(help="The column that holds each row's own labels. [as classified]")
    ] = None,
    kind: Annotated[
        str, typer.Option("--format", help="table, or label-studio: tasks to import, with predictions.")
    ] = "table",
    blind: Annotated[
        bool, typer.Option("--blind", help="Leave the predictions out of the tasks: they sway who labels.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a sheet, and lose the labels filled in by hand.")
    ] = False,
) -> None:
    """Draw rows to label by hand, stratified by predicted label and margin; a table hides both."""
    from zicl.apps.check.predictions import read_predictions
    from zicl.apps.check.sample import stratified_sample
    from zicl.apps.check.sheet import check_sheet_path, config_path, key_path, write_sheet
    from zicl.inputs.files import check_not_read
    from zicl.inputs.output import metadata_path

    check_not_read(sheet, [output])
    if kind not in ("table", "label-studio") or (blind and kind == "table"):
        given = "--blind" if blind else f"--format {kind}"
        raise UsageError(f"{given}: a sheet is a table, which hides the predictions, or tasks", hint=_FORMATS)
    tasks = kind == "label-studio"
    chosen: SheetFormat = "label-studio" if tasks else "table"
    check_sheet_path(sheet, chosen, overwrite=overwrite)
    predictions, labels = read_predictions(
        output, text_column=text_column, id_column=id_column, pair_column=pair_column, options_column=options_column
    )
    drawn = stratified_sample(predictions, labels, rows, seed)
    write_sheet(sheet, drawn, overwrite=overwrite, kind=chosen, blind=blind)
    print_status(f"{sheet} has {len(drawn.rows):,} of {counted(len(predictions), 'row')}, for {', '.join(labels)}")
    if not metadata_path(output).is_file():
        print_status(
            f"which columns were classified is not known, as {metadata_path(output).name} is not beside {output.name}:"
        )
        print_status(
            "they are text and id, unless --text-column, --pair-column, --options-column, --id-column say otherwise"
        )
    if tasks:
        _explain_tasks(sheet, config_path(sheet), key_path(sheet), blind=blind)
        return
    print_status(
        f"what zicl predicted is not in it, so as not to sway you, but in {key_path(sheet)}: keep the two together"
    )
    several = ": labels separated by |, or - for none of them" if predictions[0].multi else ""
    print_status(f"fill in its column 'gold'{several}, then: zicl check score {sheet}")


def _explain_tasks(tasks: Path, config: Path, key: Path, *, blind: bool) -> None:
    print_status(f"in Label Studio, paste {config} as the code of the labeling interface, and import {tasks}")
    if blind:
        print_status(f"what zicl predicted is not in the tasks, but in {key}: keep that")
    else:
        print_status(
            "what zicl predicted is shown, and sways who labels: accuracy will be overestimated; --blind leaves it out"
        )
    print_status(f"then export as JSON or JSON-MIN, and: zicl check score export.json --sheet {tasks}")


@app.command("score")
def score_sheet(
    sheet: Annotated[
        Path, typer.Argument(help="The file with its column 'gold' filled in, or an export of Label Studio.")
    ],
    drawn_as: Annotated[
        Path | None, typer.Option("--sheet", help="The sheet as it was drawn, if this is another file.")
    ] = None,
    precision: Annotated[float, typer.Option(min=0, max=1, help="The precision you want.")] = 0.9,
    json_output: JsonOption = False,
) -> None:
    """Estimate accuracy, precision, recall and confusions on all rows, and the margin for a wanted precision."""
    from zicl.apps.check.score import score
    from zicl.apps.check.sheet import read_sheet

    result = score(read_sheet(sheet, drawn_as), precision)
    if result.empty:
        labelled = result.accuracy.labelled
        print_status(f"left out, without a label yet: {result.empty:,} of {counted(result.empty + labelled, 'row')}")
    if result.unspoken:
        print_status(
            f"about {counted(round(result.unspoken), 'row is', 'rows are')} of a kind of which none was labelled: "
            "nothing is said about that"
        )
    if json_output:
        # "low" and "high" are the ends of intervals of this level.
        print_json({"interval": 0.95, **asdict(result)}, indent=2)
        return
    _show(result)


def _show(result: CheckReport) -> None:
    from rich.text import Text

    console = people_console()
    accuracy = result.accuracy
    # Where texts have several labels, there is no confusion matrix.
    what = "accuracy" if result.confusion else "exactly the right labels:"
    labelled = counted(accuracy.labelled, "labelled row that stands", "labelled rows that stand")
    console.print(f"{what} {_shown(accuracy)}, from {labelled} for {accuracy.rows:,.0f}")
    console.print(_labels_table(result))
    if result.confusion:
        console.print(_confusion_table(result))
    console.print(_threshold_line(result))
    if result.mistakes:
        console.print("the most confident mistakes:")
    for wrong in result.mistakes:
        text = " ".join(wrong.text.split())
        short = text if len(text) <= 100 else text[:99] + "…"
        console.print(Text(f"  {wrong.id}: {wrong.predicted} (margin {wrong.margin:.3f}), is {wrong.gold}  {short}"))


def _labels_table(result: CheckReport) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table("label", "precision", "recall")
    for one in result.labels:
        table.add_row(Text(one.label, style="bold"), _shown(one.precision), _shown(one.recall))
    return table


def _confusion_table(result: CheckReport) -> Any:
    """Estimated rows of the output, and in brackets the labelled rows behind them."""
    from rich.table import Table
    from rich.text import Text

    names = [one.label for one in result.labels]
    table = Table("is ↓  labelled as →", caption="rows of the output (rows labelled by hand)")
    for name in names:
        table.add_column(Text(name))
    cells = {(cell.gold, cell.predicted): cell for cell in result.confusion}
    for gold in names:
        shown = (f"{cells[gold, name].rows:,.0f} ({cells[gold, name].labelled})" for name in names)
        table.add_row(Text(gold, style="bold"), *shown)
    return table


def _threshold_line(result: CheckReport) -> str:
    found = result.threshold
    if found is None:
        return f"no margin gives a precision of {result.wanted:.1%} on the labelled rows"
    # Rounded down: a filter by the number that is printed must keep the row it comes from.
    margin = math.floor(found.margin * 1000) / 1000
    return (
        f"for the wanted {result.wanted:.0%}: from a margin of {margin:.3f} on, precision is estimated at "
        f"{_shown(found.precision)}; that keeps about {found.precision.rows:,.0f} rows, {found.kept:.1%} of all "
        f"({found.precision.labelled} of them labelled)"
    )


def _shown(estimate: WeightedEstimate | None) -> str:
    if estimate is None:
        return "–"
    return f"{estimate.value:.1%} (95 %: {estimate.low:.1%} to {estimate.high:.1%})"
