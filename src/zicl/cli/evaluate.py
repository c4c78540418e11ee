"""zicl tasks, evaluate, verify and merge: the paper's comparison, its verification, and sharded runs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from zicl._util.counts import counted
from zicl._util.progress import duration
from zicl.cli.cluster_options import OnOption, check_cost, connected, evaluation_workers, parse_cluster
from zicl.cli.console import people_console, print_json, print_line, print_status, progress_bars
from zicl.cli.experiment_options import ExperimentOptions
from zicl.cli.options import JsonOption, with_options
from zicl.cli.preflight import preflight
from zicl.exceptions import UsageError, ZICLError

if TYPE_CHECKING:
    from zicl.lab.evaluate.context import ExperimentContext
    from zicl.lab.evaluate.plan import RunShard
    from zicl.lab.evaluate.tasks import Task

OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="The results folder; an unfinished run in it is resumed.")
]


@dataclass(frozen=True)
class VerifyOptions(ExperimentOptions):
    """The options of an experiment whose rows are scored again: a server is queried again, too."""

    recall: ClassVar[bool] = False


@with_options(ExperimentOptions)
def evaluate(
    options: ExperimentOptions,
    output: OutputOption = Path("results"),
    shard: Annotated[str | None, typer.Option("--shard", help="I/N: run only the I-th of N parts of the plan.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run, and how long it would take.")
    ] = False,
    on: OnOption = None,
    json_output: JsonOption = False,
) -> None:
    """Run tasks × methods × inferences × seeds, and keep every score. A stopped run can be resumed."""
    from zicl.lab.evaluate.plan import RunShard
    from zicl.lab.evaluate.run import evaluate as run
    from zicl.lab.evaluate.run import finished

    preflight(output=None if dry_run else output.absolute())
    part = None if shard is None else RunShard.parse(shard)
    cluster_choice = parse_cluster(on)
    if cluster_choice is not None and dry_run:
        raise UsageError("--dry-run measures this machine, not a cluster", hint="leave out --on, and divide")
    if cluster_choice is not None:
        check_cost(options)
    with progress_bars() as report, ExitStack() as stack:
        # On a cluster the workers load the models, this process only what it plans with.
        context = options.load(report) if cluster_choice is None else options.plan(report)
        if dry_run:
            answer = _dry_run(context, output, part)
        else:
            nothing_left, compute = finished(context, output, part), None
            if nothing_left is None and cluster_choice is not None:
                cluster = stack.enter_context(connected(cluster_choice))
                workers = evaluation_workers(options, context, cluster, cluster_choice.searchers, report)
                compute = stack.enter_context(workers)
            summary = nothing_left or run(context, output, shard=part, compute=compute, report=report)
            answer = {**asdict(summary), "results": str(output)}
    if json_output:
        print_json(answer)
    elif dry_run:
        _show_dry_run(answer)
    else:
        print_status(
            f"{counted(summary.computed, 'row')} computed in {duration(summary.seconds)}, "
            f"{summary.kept:,} there already: {output}"
        )
        missing = "put the parts together: zicl merge" if part else "some rows of the plan are still missing"
        print_status(f"the tables: zicl report {output}" if summary.complete else missing)


def _dry_run(context: ExperimentContext, output: Path, part: RunShard | None) -> dict[str, Any]:
    from zicl.lab.evaluate.estimate import estimate
    from zicl.lab.evaluate.manifest import manifest
    from zicl.lab.evaluate.run import Runner
    from zicl.lab.evaluate.store import MANIFEST, ResultsFolder, check_same

    done: set[tuple[str, str]] = set()
    if (output / MANIFEST).is_file():
        stored = ResultsFolder.open(output)
        check_same(stored.manifest, manifest(context), output)
        done = stored.done()
    found = estimate(Runner(context), done, part)
    return {
        "cells": {key: {"examples": found.examples[key], "tokens": found.tokens[key]} for key in found.examples},
        "examples": sum(found.examples.values()),
        "tokens": sum(found.tokens.values()),
        "tokens_per_second": None if found.tokens_per_second is None else round(found.tokens_per_second, 1),
        "seconds": None if found.seconds is None else round(found.seconds, 1),
    }


def _show_dry_run(answer: dict[str, Any]) -> None:
    print_line("task/method/template/inference/seed\texamples\ttokens")
    for key, cell in answer["cells"].items():
        print_line(f"{key}\t{cell['examples']}\t{cell['tokens']}")
    size = f"{len(answer['cells']):,} cells, {answer['examples']:,} examples, {answer['tokens']:,}"
    if answer["seconds"] is None:
        print_status(
            f"{size} tokens to be sent to the server, each prompt once for every label; nothing was scored for this"
        )
    else:
        rate = f"{answer['tokens_per_second']:,.0f} tokens/s on this machine"
        print_status(f"{size} forward tokens; {rate}: about {duration(answer['seconds'])}")
    print_status("not counted: embedding, and labels that the model itself gives to demonstrations")


@with_options(VerifyOptions)
def verify(
    options: VerifyOptions,
    results: Annotated[Path, typer.Option("--results", "-r", help="The results folder to check.")] = Path("results"),
    sample: Annotated[int, typer.Option("--sample", min=1, help="How many rows to score again.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Decides which rows.")] = 0,
    json_output: JsonOption = False,
) -> None:
    """Score a random sample of stored rows again; exit code 1 if one differs from what was stored."""
    from zicl.lab.evaluate.manifest import fingerprint
    from zicl.lab.evaluate.store import ResultsFolder, manifest_differences
    from zicl.lab.evaluate.verify import verify as run

    # A mistake in the experiment is said first: the folder may only be missing by its default name.
    options.read()
    stored = ResultsFolder.open(results)
    with progress_bars() as report:
        context = options.load(report)
        other = list(manifest_differences("", stored.manifest["fingerprint"], fingerprint(context)))
        checked = run(context, stored, sample=sample, seed=seed, report=report)
    for line in other:
        print_status(f"note: {line}")
    wrong = [item for item in checked if not item.agrees]
    if json_output:
        print_json([{**asdict(item), "agrees": item.agrees} for item in checked])
    worst = max(item.difference for item in checked)
    print_status(
        f"the same: {len(checked) - len(wrong)} of {counted(len(checked), 'row')}; "
        f"the largest difference of a score is {worst:.2g}"
    )
    if wrong:
        first = wrong[0]
        why = f"has another {', '.join(first.other)}" if first.other else f"differs by {first.difference:.2g}"
        raise ZICLError(
            f"{first.key}, example {first.example} {why}; {first.allowed:g} is allowed",
            hint="compare model, corpus, data and versions with those in the manifest",
        )


def merge(
    results: Annotated[list[Path], typer.Argument(help="Results folders of one experiment.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write, with one file of rows.")],
) -> None:
    """Merge the parts of a sharded run, or a run and its extension, into one folder."""
    from zicl.lab.evaluate.store import merge as run

    preflight(output=output.absolute())
    merged = run(results, output)
    state = "complete" if merged.manifest["complete"] else "not complete: some rows of the plan are missing"
    print_status(f"{counted(merged.table([]).num_rows, 'row')} in {output}, {state}")


# Columns that a narrow terminal leaves out, and the width from which they are shown.
_NEEDED = {"template": 90, "origin": 120}
# The minimum width of the task, the labels and the lines between columns.
_REST = 36


def tasks(
    file: Annotated[
        Path | None,
        typer.Option("--task-file", help="A TOML file that defines more tasks, or the files of known ones."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """List the known tasks: the paper's nine, with labels, synonyms and where their examples are."""
    from zicl.lab.evaluate.tasks import read_tasks

    known = list({**read_tasks(), **(read_tasks(file) if file else {})}.values())
    if json_output:
        print_json([task.model_dump(mode="json") for task in known], indent=2)
        return
    _table(known)


def _table(known: list[Task]) -> None:
    """Print what fits the terminal's width; from 80 columns on, ids of data sets are not wrapped, to be copied."""
    from rich.table import Table
    from rich.text import Text

    console = people_console()
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
        print_status(
            f"left out, as there are only {console.width} columns: {' and '.join(dropped)}; --json has everything"
        )


def _place(task: Task) -> str:
    """Return where the examples are, and a note about them on the next line."""
    if task.test is not None:
        return str(task.test)
    if task.hub is None:
        return "none given"
    config = f" ({task.hub.config})" if task.hub.config else ""
    return f"hf:{task.hub.id}{config}" + (f"\n{task.hub.note}" if task.hub.note else "")
