"""zicl explain, retrieve and prompt: look at every step of one prediction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zicl._util.process import go_offline
from zicl.cli.console import people_console, print_json, print_json_lines, print_line, progress_bars
from zicl.cli.input_rows import check_is_text
from zicl.cli.options import (
    ClassifierOptions,
    FitTextOption,
    JsonOption,
    OfflineOption,
    PromptingOptions,
    SeedOption,
    with_options,
)
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.inputs.pair import Text

TextArgument = Annotated[str, typer.Argument(help="The text.")]
FitPairOption = Annotated[
    str | None,
    typer.Option("--pair-column", help="The column of the file of --fit that holds the second text of a pair."),
]
PairOption = Annotated[str | None, typer.Option("--pair", help="The second text, where pairs are classified.")]


def _check(text: str, pair: str | None = None) -> Text:
    """Return a text or a pair that can be classified, and is no name of a file."""
    from zicl.inputs.texts import check_pair, check_text

    check_is_text(text)
    return check_text(text, "the text") if pair is None else check_pair(text, pair, "the pair")


@with_options(ClassifierOptions)
def explain(
    options: ClassifierOptions,
    text: TextArgument,
    pair: PairOption = None,
    text_column: FitTextOption = None,
    pair_column: FitPairOption = None,
    json_output: JsonOption = False,
) -> None:
    """Explain why a text gets its label: what each expert says, and the demonstrations of a prompt."""
    checked = _check(text, pair)
    columns = options.fit_columns(text_column, pair_column)
    with progress_bars() as report:
        report("loading the models", 0, None)
        explanation = options.classifier(report=report, columns=columns).explain(checked)
    if json_output:
        print_json(explanation.to_dict())
        return

    people_console().print(explanation)


@with_options(PromptingOptions)
def prompt(
    options: PromptingOptions,
    text: TextArgument,
    pair: PairOption = None,
    text_column: FitTextOption = None,
    pair_column: FitPairOption = None,
    json_output: JsonOption = False,
) -> None:
    """Print the exact prompt of a text: the prefix all labels share, then each label's given and [scored] part."""
    checked = _check(text, pair)
    columns = options.fit_columns(text_column, pair_column)
    with progress_bars() as report:
        report("loading the models", 0, None)
        pipeline = options.classifier(report=report, columns=columns).prompting()
        if pipeline.labels.counted:
            raise UsageError(
                "the labels only count options that differ from text to text", hint="name labels: --labels a,b"
            )
        built = pipeline.prepare(checked).prompt
    names = list(pipeline.labels.names)
    names += [f"{name}, content-free input {number}" for number in range(1, built.probes + 1) for name in names]
    if json_output:
        branches = [
            {
                "label": name,
                "given": b.given.text,
                "scored": b.scored.text,
                "given_tokens": b.given.tokens,
                "scored_tokens": b.scored.tokens,
            }
            for name, b in zip(names, built.branches, strict=True)
        ]
        shared = built.prefix + built.stem
        print_json({"prefix": shared.text, "prefix_tokens": shared.tokens, "branches": branches})
        return
    print_line((built.prefix + built.stem).text)
    for name, branch in zip(names, built.branches, strict=True):
        print_line(f"──── {name}: {len(branch.scored)} scored tokens")
        print_line(f"{branch.given.text}[{branch.scored.text}]")


def retrieve(
    text: TextArgument,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", "-c", help="A corpus built with 'zicl corpus build'.")
    ] = None,
    retrieval: Annotated[
        str, typer.Option("--retrieval", help="physical, nearest, diverse, random or domain-random.")
    ] = "physical",
    k: Annotated[int, typer.Option("--k", help="How many sentences.")] = 16,
    seed: SeedOption = None,
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Print the sentences that are a text's demonstrations, nearest first, and how they were retrieved."""
    if corpus is None:
        raise UsageError("no corpus was named", hint="--corpus reviews.zicl")
    if offline:
        go_offline()
    from zicl.retrieve.index import Index
    from zicl.retrieve.strategies.base import RETRIEVERS, Query

    if k < 0:
        raise UsageError(f"--k is {k}; expected 0 or more")
    _check(text)
    index = Index.open(corpus, offline=offline)
    found = RETRIEVERS.get(retrieval)().retrieve(index, Query(text.strip(), seed or 0), k)
    rows = []
    for item in found:
        nearest = None if item.nearest is None else index.sentence(item.nearest).text
        sentence = index.sentence(item.row)
        rows.append(
            {
                "row": item.row,
                "text": sentence.text,
                "nearest": nearest,
                "similarity": item.similarity,
                "domain": sentence.domain,
            }
        )
    if json_output:
        print_json_lines(json.dumps(row, ensure_ascii=False) for row in rows)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("sentence", "nearest sentence", "similarity", "source")
    for row in rows:
        similarity = "" if row["similarity"] is None else f"{row['similarity']:.3f}"
        nearest = "" if row["nearest"] in (None, row["text"]) else str(row["nearest"])
        table.add_row(Text(str(row["text"])), Text(nearest), similarity, f"{row['domain']} #{row['row']}")
    people_console().print(table)
