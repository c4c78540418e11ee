"""zicl suggest: a diagnosis that needs no labels, and the options that address what it finds."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from zicl._util.counts import counted
from zicl.cli.console import people_console, print_json, print_status, progress_bars
from zicl.cli.options import ClassifierOptions, JsonOption, with_options
from zicl.cli.preflight import preflight

if TYPE_CHECKING:
    from zicl.apps.suggest.run import Diagnosis

_NOTE = (
    "these are signs, not an accuracy; for that, label about a hundred rows by hand: "
    "zicl check sample labelled.csv -o to_label.csv"
)
_WORST_FIRST = ("warn", "look", "good")
_STYLES = {"warn": "bold red", "look": "bold yellow", "good": "green"}


@with_options(ClassifierOptions)
def suggest(
    options: ClassifierOptions,
    file: Annotated[
        str,
        typer.Option("--file", "-f", help="A .csv, .xlsx, .jsonl, .parquet, .arrow or .txt file of unlabelled texts."),
    ],
    text_column: Annotated[str, typer.Option(help="The column that holds the text.")] = "text",
    pair_column: Annotated[str | None, typer.Option(help="The column that holds the second text of a pair.")] = None,
    sample: Annotated[int, typer.Option(min=5, help="How many texts to score, four times each.")] = 40,
    json_output: JsonOption = False,
) -> None:
    """Diagnose unlabelled texts, corpus and labels: signs of trouble, and the options that address them."""
    preflight(file=file)
    from zicl.inputs.tables import read_rows

    texts = [row.text for row in read_rows(file, text_column=text_column, pair_column=pair_column)]
    # Slow to import: a file that cannot be read is found before.
    from zicl.apps.suggest.run import suggest as find

    print_status(f"{counted(len(texts), 'row')}; at most {sample:,} different texts are scored")
    with progress_bars() as report:
        report("loading the models", 0, None)
        columns = {"text_column": text_column, "pair_column": pair_column}
        classifier = _plain(options).classifier(lambda: texts, report, columns)
        found = find(classifier, texts, sample=sample, report=report)
    if json_output:
        print_json({**asdict(found), "note": _NOTE})
    else:
        _show(found)


def _plain(options: ClassifierOptions) -> ClassifierOptions:
    """Drop what is fitted on texts: the diagnosis does not use it, and fitting would be wasted."""
    if options.saved is not None:
        return options
    fitted = ("calibration.", "retrieval.share=")
    kept = [entry for entry in options.settings or [] if not entry.startswith(fitted)]
    # Texts that join the corpus are still read.
    joining = any(entry.startswith("retrieval.include_fit_texts=") for entry in kept)
    learns = options.resolved().pile.method != "none"
    return options.but(calibrate=None, fit=options.fit if joining or learns else None, settings=kept)


def _show(found: Diagnosis) -> None:
    from rich.padding import Padding
    from rich.text import Text

    def inside(text: str) -> Padding:
        return Padding(Text(text), (0, 0, 0, 6), expand=False)

    console = people_console()
    console.print(
        f"{counted(len(found.signals), 'sign')} from {found.sampled:,} of {counted(found.distinct, 'different text')}"
    )
    ordered = sorted(found.signals, key=lambda each: _WORST_FIRST.index(each.level))
    # Consecutive signs that one option addresses share its line.
    for (level, option), members in groupby(ordered, key=lambda each: (each.level, each.option)):
        for signal in members:
            console.print(Text(f"{level}  {signal.name}: {signal.value:.2f}", style=_STYLES[level]))
            console.print(inside(signal.meaning))
        if level != "good":
            console.print(inside(f"→ {option}"))
    console.print(Text(_NOTE), soft_wrap=True)
