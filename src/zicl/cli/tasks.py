"""zicl tasks: what can be evaluated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zicl.cli._options import JsonOption
from zicl.cli._progress import say

if TYPE_CHECKING:
    from zicl.lab.evaluate.tasks import Task

# The columns a narrow terminal goes without, and how wide one must be to have them.
_NEEDED = {"template": 90, "origin": 120}
# What task, labels and the lines between the columns take at least.
_REST = 36


def tasks(
    file: Annotated[
        Path | None, typer.Option("--task-file", help="A TOML file with tasks of your own, or files of these.")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """The tasks the package knows: the paper's nine, with labels, synonyms and where their examples are."""
    from zicl.lab.evaluate.tasks import read_tasks

    known = list({**read_tasks(), **(read_tasks(file) if file else {})}.values())
    if json_output:
        typer.echo(json.dumps([task.model_dump(mode="json") for task in known], indent=2, ensure_ascii=False))
        return
    _table(known)


def _table(known: list[Task]) -> None:
    """What can be told in the width there is; from 80 columns on the ids of data sets stay whole, to be copied."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    places = [_place(task) for task in known]
    widest = max(len(place.partition("\n")[0]) for place in places)
    dropped = [name for name, width in _NEEDED.items() if console.width < width]
    table = Table("task", "labels (synonyms)", *(name for name in _NEEDED if name not in dropped))
    table.add_column("examples", width=min(widest, console.width - _REST), overflow="fold")
    for task, place in zip(known, places, strict=True):
        labels = (f"{x.name} ({', '.join(x.synonyms)})" if x.synonyms else x.name for x in task.labels)
        more = {
            "template": task.template if isinstance(task.template, str) else " | ".join(task.template),
            "origin": f"{task.origin}; {task.note}" if task.origin and task.note else task.origin or task.note,
        }
        cells = (", ".join(labels), *(text for name, text in more.items() if name not in dropped), place)
        table.add_row(Text(task.name, style="bold"), *map(Text, cells))
    console.print(table)
    if dropped:
        say(f"left out, as there are only {console.width} columns: {' and '.join(dropped)}; --json has everything")


def _place(task: Task) -> str:
    """Where the examples are, and on a line of its own what is to be said about them."""
    if task.test is not None:
        return str(task.test)
    if task.hub is None:
        return "none given"
    config = f" ({task.hub.config})" if task.hub.config else ""
    return f"hf:{task.hub.id}{config}" + (f"\n{task.hub.note}" if task.hub.note else "")
