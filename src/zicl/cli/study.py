"""zicl study: the paper's ablations and analyses, from experiments to figures and findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from zicl._util.counts import counted
from zicl._util.progress import duration
from zicl.cli.console import print_json, print_line, print_status, progress_bars
from zicl.cli.experiment_options import DataOptions
from zicl.cli.options import JsonOption, with_options
from zicl.cli.preflight import preflight
from zicl.exceptions import HeadsError, UsageError
from zicl.lab.study.registry import ALL, NAMES

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.lab.evaluate.plan import RunShard
    from zicl.lab.study.base import Study
    from zicl.lab.study.context import StudyContext
    from zicl.lab.study.run import StudyCost, StudyRun
    from zicl.lm.base import LanguageModel

_FINDS = "heads"
T = TypeVar("T")


@dataclass(frozen=True)
class StudyCommandOptions(DataOptions):
    """The options that override the settings of a study's experiments."""

    tasks: Annotated[
        str | None,
        typer.Option("--tasks", help="Comma-separated; 'zicl tasks' lists them. [the study's, see the docs]"),
    ] = None
    inferences: Annotated[
        str | None,
        typer.Option("--inference", help="Comma-separated: channel, direct, both. [channel; heads: both kinds]"),
    ] = None
    config: Annotated[
        Path | None, typer.Option("--config", help="A TOML file of settings, for all studies and for single ones.")
    ] = None

    def context(self, folder: Path, report: ProgressReport, *, dry_run: bool) -> StudyContext:
        """Return the context of the studies; nothing is loaded yet."""
        from zicl.lab.study.context import StudyContext
        from zicl.lab.study.settings import read_settings

        settings = read_settings(self.config, self.given())
        self.begin()
        return StudyContext(
            settings,
            folder,
            lambda experiment: self.placed(experiment, self.config),
            self._remote_lm,
            offline=self.offline,
            dry_run=dry_run,
            report=report,
        )

    def _remote_lm(self, name: str) -> LanguageModel | None:
        """Open a model behind a server."""
        found = self.language_model(name, offline=self.offline)
        return None if isinstance(found, str) else found


@with_options(StudyCommandOptions)
def study(
    options: StudyCommandOptions,
    name: Annotated[
        str,
        typer.Argument(help=f"{', '.join(NAMES)}; or {ALL}: all of them."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder of all studies; unfinished ones are resumed.")
    ] = Path("studies"),
    shard: Annotated[
        str | None, typer.Option("--shard", help="I/N: run only the I-th of N parts of each plan.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run, and how long it would take.")
    ] = False,
    find: Annotated[
        bool, typer.Option("--find", help="heads: only find them, and draw the map of their scores.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Run a study's experiments, draw its figures and print its findings. A stopped run can be resumed."""
    from zicl.lab.evaluate.plan import RunShard
    from zicl.lab.study.registry import get_studies

    preflight(output=None if dry_run else output.absolute(), figures=None if dry_run else True)
    studies, part = get_studies(name), None if shard is None else RunShard.parse(shard)
    if find and name != _FINDS:
        raise UsageError(f"--find is for zicl study {_FINDS}, not for {name}", hint="leave it out")
    if find and (dry_run or shard):
        raise UsageError("--find goes with neither --dry-run nor --shard", hint="it takes minutes; leave them out")
    with progress_bars() as report:
        context = options.context(output, report, dry_run=dry_run)
        context.check(studies, finding=find)
        if find:
            answer: Any = _find(studies[0], context)
        elif dry_run:
            answer = _dry_run(studies, context, part)
        else:
            answer = _run(studies, context, part)
    if json_output:
        print_json(answer if find else [asdict(each) for each in answer])
    elif find:
        _show_heads(answer)
    elif dry_run:
        _show_costs(answer)
    else:
        _show(answer, output)


def _run(studies: list[Study], context: StudyContext, part: RunShard | None) -> list[StudyRun]:
    from zicl.lab.study.run import run_study

    return _each(studies, lambda study: run_study(study, context, shard=part))


def _each(studies: list[Study], step: Callable[[Study], T]) -> list[T]:
    """Run a step for every study; skip one that needs heads the model does not expose, with a note."""
    done = []
    for each in studies:
        try:
            done.append(step(each))
        except HeadsError as error:
            if len(studies) == 1:
                raise
            print_status(f"{each.name} is left out: {error}")
    return done


def _show(answer: list[StudyRun], output: Path) -> None:
    for ran in answer:
        level = " (in brackets: 95 % intervals)" if any("[" in line for line in ran.summary.findings) else ""
        print_line("\n  ".join([f"{ran.summary.title}{level}", *ran.summary.findings]))
        rows = f"{counted(ran.computed, 'row')} computed in {duration(ran.seconds)}, {ran.kept:,} there already"
        shared = f", {ran.reused:,} taken from other studies" if ran.reused else ""
        state = "" if ran.complete else "; some rows are still missing"
        print_status(f"{ran.study}: {rows}{shared}{state}; {len(ran.summary.figures)} figures: {output / ran.study}")


def _dry_run(studies: list[Study], context: StudyContext, part: RunShard | None) -> list[StudyCost]:
    from zicl.lab.study.run import StudyCosts

    counted = _each(studies, StudyCosts(context, part).estimate)
    return [cost for parts in counted for cost in parts]


def _show_costs(answer: list[StudyCost]) -> None:
    print_line("study\tpart\texamples\ttokens\tseconds")
    for cost in answer:
        seconds = "-" if cost.seconds is None else f"{cost.seconds:.0f}"
        print_line(f"{cost.study}\t{cost.part}\t{cost.examples}\t{cost.tokens}\t{seconds}")
    tokens = sum(cost.tokens for cost in answer)
    size = f"{sum(c.examples for c in answer):,} examples, {tokens:,} tokens"
    known = [cost.seconds for cost in answer if cost.seconds is not None]
    print_status(
        f"{size} to be sent to the server" if len(known) < len(answer) else f"{size}: about {duration(sum(known))}"
    )
    print_status("not counted: building and embedding a corpus, and finding heads")


def _find(study: Study, context: StudyContext) -> dict[str, Any]:
    from zicl.lab.study.context import LoadedSetup
    from zicl.lab.study.heads import HeadOptions, draw_scores

    options = context.settings.options(study)
    assert isinstance(options, HeadOptions)
    scores = LoadedSetup(context, study).heads(options.task, options.examples, options.found_on)
    drawn = draw_scores(context.folder / study.name, options)
    top = {str(head): scores[head] for head in scores.top(options.count)}
    about = {"model": scores.model, "task": scores.task, "prompts": scores.prompts, "found_on": scores.found_on}
    return {**about, "heads": top, "map": str(context.folder / study.name / drawn.file)}


def _show_heads(answer: dict[str, Any]) -> None:
    print_line("head\tscore")
    for head, score in answer["heads"].items():
        print_line(f"{head}\t{score:.4f}")
    print_status(
        f"{answer['model']}, {answer['prompts']} prompts of {answer['task']} ({answer['found_on']}); the map of all "
        f"heads: {answer['map']}"
    )
