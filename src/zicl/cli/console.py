"""All that is printed for people: lines, tables and progress bars, without the control characters of data.

Label names, texts and file names may come from a stranger, and a terminal obeys what they say. Whatever is printed goes
through ``printable`` here; JSON and CSV are for programs, and written as they are.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import typer

from zicl._util.printable import printable
from zicl._util.progress import ProgressReport, duration

if TYPE_CHECKING:
    from rich.console import Console

# Stages whose numbers are things that a person counts; those of others are bytes, seconds or steps.
_COUNTED = ("embedding", "encoding the texts", "classifying", "asking the language model", "fitting label priors")
# The longest silence of a log, in seconds.
_SILENCE = 60.0
# The width of what is printed where COLUMNS is 0, as some programs that start others set it.
_WIDTH = 80
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@contextmanager
def progress_bars() -> Iterator[ProgressReport]:
    """Return a progress report that draws a bar per stage; without a terminal, it writes lines."""
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = people_console(stderr=True)
    if not console.is_terminal:
        yield progress_lines()
        return
    progress = Progress(
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[note]}", style="dim", markup=False),
        console=console,
    )
    tasks: dict[str, TaskID] = {}
    last: list[str] = []

    def report(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        if stage not in tasks:
            if last and not progress.tasks[tasks[last[-1]]].finished:
                progress.update(tasks[last[-1]], total=1, completed=1)
            # What an earlier run did counts as done, and not for the rate.
            tasks[stage] = progress.add_task(stage, total=total, completed=int(done), note=note, rate="", count="")
            last.append(stage)
        task = progress.tasks[tasks[stage]]
        count = "" if not total else f"{done / total:3.0%}" if stage not in _COUNTED else f"{done:,.0f} of {total:,.0f}"
        rate = f"{task.speed:,.{1 if task.speed < 10 else 0}f}/s" if task.speed and stage in _COUNTED else ""
        progress.update(tasks[stage], completed=done, total=total, note=note, rate=rate, count=count)

    with progress:
        yield report
        for task in progress.tasks:
            if not task.finished:
                progress.update(task.id, total=1, completed=1)


def progress_lines(
    write: Callable[[str], None] | None = None, clock: Callable[[], float] = time.monotonic
) -> ProgressReport:
    """Return a progress report for logs: a line when a stage begins, then one per minute with the time left."""
    begun: dict[str, tuple[float, float]] = {}
    last_line = clock()

    def report(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        nonlocal last_line
        now, line = clock(), f"{stage} {note}".rstrip()
        if stage in begun:
            start, first = begun[stage]
            if now - last_line < _SILENCE or not total or done <= first:
                return
            left = duration((now - start) * (total - done) / (done - first))
            line = f"{line}: {done / total:.0%}, about {left} left"
        begun.setdefault(stage, (now, done))
        last_line = now
        (write or print_status)(line)

    return report


def people_console(*, stderr: bool = False) -> Console:
    """Return a console for tables and lines: no markup and no control characters in what is printed."""
    from rich.console import Console
    from rich.segment import Segment

    class PeopleConsole(Console):
        """Escape what is rendered, before a table measures and cuts it."""

        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    columns = os.environ.get("COLUMNS", "")
    width = _WIDTH if columns.isdecimal() and int(columns) == 0 else None
    return PeopleConsole(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def print_status(text: str = "") -> None:
    """Print a line for people, on standard error."""
    people_console(stderr=True).print(printable(text), soft_wrap=True)


def print_line(text: str = "") -> None:
    """Print a result for people, on standard output."""
    typer.echo(printable(text))


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print a result for programs, on standard output."""
    print_json_lines([json.dumps(value, indent=indent, ensure_ascii=False)])


def print_json_lines(lines: Iterable[str]) -> None:
    """Print lines of JSON: in UTF-8, as JSON is, and in ASCII where standard output has another encoding."""
    text = "\n".join(lines)
    typer.echo(text if _is_utf8(sys.stdout) else _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text))


def _is_utf8(stream: TextIO) -> bool:
    return codecs.lookup(stream.encoding or "utf-8").name == "utf-8"


def rate(done: int, seconds: float, left: int) -> str:
    """Return the rate so far, and how long the rest will take.

    >>> rate(16, 32, 100)
    '2.00 s per row on this machine: about 3 minutes for the rest'
    >>> rate(1000, 2, 9000)
    '500 rows per second on this machine: about 18 seconds for the rest'
    """
    each = seconds / done
    speed = f"{each:.2f} s per row" if each >= 0.1 else f"{1 / max(each, 1e-9):,.0f} rows per second"
    return f"{speed} on this machine: about {duration(each * left)} for the rest"
