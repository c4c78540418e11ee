"""zicl tasks: what can be evaluated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zicl.cli._options import JsonOption

if TYPE_CHECKING:
    from zicl.evaluate.tasks import Task


def tasks(
    file: Annotated[
        Path | None, typer.Option("--tasks", help="A TOML file with tasks of your own, or with the files of these.")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """The tasks the package knows: the paper's nine, with labels, synonyms and where their examples are."""
    from zicl.evaluate.tasks import read_tasks

    known = list({**read_tasks(), **(read_tasks(file) if file else {})}.values())
    if json_output:
        typer.echo(json.dumps([task.model_dump(mode="json") for task in known], indent=2, ensure_ascii=False))
        return
    _table(known)


def _table(known: list[Task]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("task", "labels (synonyms)", "template", "origin")
    table.add_column("examples", overflow="fold")
    for task in known:
        labels = (f"{x.name} ({', '.join(x.synonyms)})" if x.synonyms else x.name for x in task.labels)
        template = task.template if isinstance(task.template, str) else " | ".join(task.template)
        origin = f"{task.origin}; {task.note}" if task.origin and task.note else task.origin or task.note
        cells = (", ".join(labels), template, origin, _place(task))
        table.add_row(Text(task.name, style="bold"), *map(Text, cells))
    Console(highlight=False).print(table)


def _place(task: Task) -> str:
    if task.test is not None:
        return str(task.test)
    if task.hub is None:
        return "none given"
    config = f" ({task.hub.config})" if task.hub.config else ""
    return f"hf:{task.hub.id}{config}" + (f", {task.hub.note}" if task.hub.note else "")
