"""zicl distill: a small classifier that predicts what the language model would."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl._util.counts import counted
from zicl.cli.console import people_console, print_json, print_status, progress_bars, rate
from zicl.cli.options import JsonOption, PromptingOptions, with_options
from zicl.cli.preflight import preflight

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.apps.distill.classifier import DistillationRecord


@with_options(PromptingOptions)
def distill(
    options: PromptingOptions,
    file: Annotated[
        str,
        typer.Option("--file", "-f", help="A .csv, .xlsx, .jsonl, .parquet, .arrow or .txt file of unlabelled texts."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to save to, NAME.zicl-clf, for classify --with.")
    ],
    sample: Annotated[int, typer.Option(min=5, help="How many texts the language model labels.")] = 2000,
    held_out: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="The fraction of them that is held out, to measure agreement.")
    ] = 0.2,
    text_column: Annotated[str, typer.Option(help="The column that holds the text.")] = "text",
    id_column: Annotated[
        str | None, typer.Option(help="The column that names a row. [id, else made from the text]")
    ] = None,
    pair_column: Annotated[str | None, typer.Option(help="The column that holds the second text of a pair.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing classifier, and labels made with other settings.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Train a small classifier on the language model's predictions; it runs at the encoder's speed."""
    preflight(output=output)
    if output.exists():
        from zicl._util.locks import remove_finished
        from zicl.persistence import CLASSIFIER

        remove_finished(output, CLASSIFIER)
    preflight(new_folder=None if overwrite else output, save=output, file=file)
    from zicl.inputs.tables import read_rows

    rows = read_rows(file, text_column=text_column, id_column=id_column, pair_column=pair_column)
    texts = [row.text for row in rows]
    from zicl.apps.distill.run import distill_to, distinct_texts

    distinct = len(distinct_texts(texts))
    count = min(sample, distinct)
    print_status(
        f"{counted(len(texts), 'row')}, {counted(distinct, 'different text')}; "
        f"the language model labels {count:,} of them"
    )
    with progress_bars() as report:
        report("loading the models", 0, None)
        teacher = options.classifier(lambda: texts, report, {"text_column": text_column, "pair_column": pair_column})
        made = distill_to(
            output,
            teacher,
            texts,
            sample=sample,
            held_out=held_out,
            overwrite=overwrite,
            report=_with_rate(report),
        )
    assert made.origin is not None
    if json_output:
        print_json({"output": str(output), **made.origin.to_dict()})
    else:
        _show(made.origin)
    print_status(f"saved as {output}: zicl classify --with {output} --file …")


def _with_rate(report: ProgressReport) -> ProgressReport:
    """Also print once how long the language model will take, for those who see no bar."""
    from zicl.apps.distill.run import STAGE

    times: list[float] = []

    def reported(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        report(stage, done, total, note)
        if stage != STAGE or len(times) > 1:
            return
        times.append(time.monotonic())
        if done and total and total > done:
            print_status(rate(int(done), times[1] - times[0], int(total - done)))

    return reported


def _show(origin: DistillationRecord) -> None:

    found, console = origin.agreement, people_console()
    console.print(
        f"the same label as the language model on {found.value:.1%} of {counted(found.rows, 'held-out text')}"
        f" (95 %: {found.low:.1%} to {found.high:.1%})"
    )
    console.print(
        f"baseline: always predicting {found.most!r} would give {found.majority:.1%}", markup=False, soft_wrap=True
    )
    console.print(
        f"probabilities: mean divergence {found.divergence:.3f}, log-loss {found.log_loss:.3f} (0 is the best);"
        f" trained on {counted(origin.trained, 'text')}, C = {origin.strength:g}",
        soft_wrap=True,
    )
    console.print(_labels(origin))


def _labels(origin: DistillationRecord) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table("label", "language model", "distilled", "agreement", "divergence")
    for one in origin.agreement.labels:
        same = "–" if one.agreement is None else f"{one.agreement:.1%}"
        apart = "–" if one.divergence is None else f"{one.divergence:.3f}"
        table.add_row(Text(one.label, style="bold"), f"{one.rows:,}", f"{one.given:,}", same, apart)
    return table
