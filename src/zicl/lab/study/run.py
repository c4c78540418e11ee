"""From a study's rows to what it tells: figures, and findings computed from the numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zicl._util.progress import ProgressReport
from zicl.lab.evaluate.estimate import estimate
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.plan import RunShard
from zicl.lab.evaluate.run import Runner, evaluate
from zicl.lab.evaluate.store import MANIFEST, ROWS, ResultsFolder, check_same
from zicl.lab.report.collect import collect
from zicl.lab.report.study_summary import DrawnFigure, StudySummary
from zicl.lab.study.base import Study, StudyOptions, StudyPart
from zicl.lab.study.context import StudyContext
from zicl.lab.study.figures import StudyFigure, draw_figure
from zicl.lab.study.outcome import StudyOutcome
from zicl.lab.study.reuse import reuse_rows, same_cells, task_of


def summarize(study: Study, options: StudyOptions, folder: Path) -> StudySummary:
    """Draw a study's figures and write its findings, from the rows its folder holds."""
    parts = [path for path in sorted(folder.iterdir()) if (path / MANIFEST).is_file() and (path / ROWS).is_dir()]
    findings: tuple[str, ...] = ()
    figures: tuple[DrawnFigure, ...] = ()
    if parts:
        outcome = StudyOutcome(collect(parts), folder)
        made = [_drawn(each, folder) for each in study.figures(options, outcome)]
        figures = tuple(each for each in made if each is not None)
        findings = tuple(study.findings(options, outcome))
    told = StudySummary(study.name, study.title, study.question, study.paper, findings, figures)
    told.write(folder)
    return told


def _drawn(figure: StudyFigure | DrawnFigure, folder: Path) -> DrawnFigure | None:
    if isinstance(figure, DrawnFigure):
        return figure
    written = draw_figure(figure, folder)
    return DrawnFigure(written[0].name, figure.title, figure.alt) if written else None


# -- A study, read from top to bottom: its experiments into result folders, then what their rows say.


@dataclass(frozen=True)
class StudyRun:
    """What a run of a study did: rows computed, taken from another study, and there before."""

    study: str
    computed: int
    borrowed: int
    kept: int
    seconds: float
    complete: bool
    told: StudySummary


def run_study(study: Study, bench: StudyContext, *, shard: RunShard | None = None) -> StudyRun:
    """Run what is missing of a study, and write what is known then."""
    computed = borrowed = kept = 0
    seconds, complete = 0.0, True
    for part in bench.parts(study):
        folder = bench.results(study, part)
        world = bench.world(bench.experiment(study, part))
        world.check()
        taken = reuse_rows(world, folder, bench.others(folder), shard)
        found = evaluate(world, folder, shard=shard, report=_under(f"{study.name}/{part.name}", bench.report))
        computed, borrowed = computed + found.computed, borrowed + taken
        kept += max(0, found.kept - taken)
        seconds, complete = seconds + found.seconds, complete and found.complete
    return StudyRun(study.name, computed, borrowed, kept, seconds, complete, summarize_study(study, bench))


def summarize_study(study: Study, bench: StudyContext) -> StudySummary:
    """Figures and findings of the rows there are."""
    return summarize(study, bench.settings.options(study), bench.folder / study.name)


@dataclass(frozen=True)
class StudyCost:
    """What an experiment of a study would take; rows that another one brings are not counted twice."""

    study: str
    part: str
    examples: int
    tokens: int
    seconds: float | None


@dataclass(frozen=True, eq=False)
class StudyCosts:
    """Counts studies one after the other: ``before`` are the plans of those whose rows will be there."""

    bench: StudyContext
    shard: RunShard | None = None
    before: list[dict[str, Any]] = field(default_factory=list)

    def of(self, study: Study) -> list[StudyCost]:
        """Count the forward tokens of what is still to be computed, and time some prompts of each experiment."""
        return [self._part(study, part) for part in self.bench.parts(study)]

    def _part(self, study: Study, part: StudyPart) -> StudyCost:
        world = self.bench.world(self.bench.experiment(study, part))
        plan, folder = manifest(world), self.bench.results(study, part)
        done = _done(folder, plan)
        for other in self.before:
            for name in same_cells(plan, other):
                # A smaller experiment has the first examples of a larger one.
                brought = world.examples[task_of(name)][: other["cells"][name]["examples"]]
                done |= {(name, example.id) for example in brought}
        cost = estimate(Runner(world), done, self.shard)
        self.before.append(plan)
        examples, tokens = sum(cost.examples.values()), sum(cost.tokens.values())
        return StudyCost(study.name, part.name, examples, tokens, cost.seconds)


def _done(folder: Path, plan: dict[str, Any]) -> set[tuple[str, str]]:
    if not (folder / MANIFEST).is_file():
        return set()
    stored = ResultsFolder.open(folder)
    check_same(stored.manifest, plan, folder)
    return stored.done()


def _under(name: str, report: ProgressReport) -> ProgressReport:
    """A report whose stages are those of one experiment."""

    def named(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        report(f"{name}: {stage}", done, total, note)

    return named
