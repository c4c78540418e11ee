"""All commands in one tree."""

from __future__ import annotations

from typing import Annotated

import typer

from zicl._util.process import __version__
from zicl.cli import (
    check,
    classify,
    corpus,
    demo,
    distill,
    evaluate,
    export,
    index,
    inspect,
    labels,
    models,
    report,
    serve,
    study,
    suggest,
)
from zicl.cli.help import GroupedCommand

app = typer.Typer(
    name="zicl",
    help="Turn raw, unlabelled text and a list of labels into a text classifier.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo", cls=GroupedCommand)(demo.demo)
app.command("classify", cls=GroupedCommand)(classify.classify)
app.command("suggest", cls=GroupedCommand)(suggest.suggest)
app.command("distill", cls=GroupedCommand)(distill.distill)
app.command("export", cls=GroupedCommand)(export.export)
app.command("serve", cls=GroupedCommand)(serve.serve)
app.command("explain", cls=GroupedCommand)(inspect.explain)
app.command("retrieve", cls=GroupedCommand)(inspect.retrieve)
app.command("prompt", cls=GroupedCommand)(inspect.prompt)
app.command("tasks", cls=GroupedCommand)(evaluate.tasks)
app.command("evaluate", cls=GroupedCommand)(evaluate.evaluate)
app.command("study", cls=GroupedCommand)(study.study)
app.command("report", cls=GroupedCommand)(report.report)
app.command("verify", cls=GroupedCommand)(evaluate.verify)
app.command("merge", cls=GroupedCommand)(evaluate.merge)
app.add_typer(check.app, name="check", help="How accurate is it on your own data, from a hundred rows you label.")
app.add_typer(corpus.app, name="corpus", help="Build, change and look into corpora of raw text.")
app.add_typer(index.app, name="index", help="Build the vectors of a corpus again.")
app.add_typer(labels.app, name="labels", help="Draft a labels.toml.")
app.add_typer(models.app, name="models", help="Fetch models and word lists that need no model hub.")


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"zicl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turn raw, unlabelled text and a list of labels into a text classifier."""
