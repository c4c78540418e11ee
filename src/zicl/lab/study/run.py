"""Run a study: its experiments into results folders, then figures and findings from the rows. Or estimate its cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zicl._util.progress import ProgressReport
from zicl.lab.evaluate.estimate import estimate
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.plan import RunShard
from zicl.lab.evaluate.run import Runner, evaluate, finished
from zicl.lab.evaluate.store import MANIFEST, ResultsFolder, check_same, is_results
from zicl.lab.report.collect import collect
from zicl.lab.report.study_summary import StudySummary, SummaryFigure
from zicl.lab.study.base import Study, StudyOptions, StudyPart
from zicl.lab.study.context import StudyContext
from zicl.lab.study.figures import draw_figure
from zicl.lab.study.outcome import StudyOutcome
from zicl.lab.study.reuse import reuse_rows, same_cells, task_of


@dataclass(frozen=True)
class StudyRun:
    """The result of running a study: rows computed, reused from another study, and present before."""

    study: str
    computed: int
    reused: int
    kept: int
    seconds: float
    complete: bool
    summary: StudySummary


def run_study(study: Study, context: StudyContext, *, shard: RunShard | None = None) -> StudyRun:
    """Run the missing rows of a study, and summarize all rows that it has then."""
    computed = reused = kept = 0
    seconds, complete = 0.0, True
    # All experiments are read and checked before the first is computed: a later one may be impossible.
    planned = [(part, context.experiment_context(context.experiment(study, part))) for part in context.parts(study)]
    stored = [finished(experiment, context.results_folder(study, part), shard) for part, experiment in planned]
    for (_, experiment), run in zip(planned, stored, strict=True):
        if run is None:
            experiment.check()
    for (part, experiment), before in zip(planned, stored, strict=True):
        folder, run, copied = context.results_folder(study, part), before, 0
        if run is None:
            copied = reuse_rows(experiment, folder, context.other_results(folder), shard)
            report = _with_prefix(f"{study.name}/{part.name}: ", context.report)
            run = evaluate(experiment, folder, shard=shard, report=report)
        computed, reused = computed + run.computed, reused + copied
        kept += max(0, run.kept - copied)
        seconds, complete = seconds + run.seconds, complete and run.complete
    summary = summarize(study, context.settings.options(study), context.folder / study.name)
    return StudyRun(study.name, computed, reused, kept, seconds, complete, summary)


def _with_prefix(prefix: str, report: ProgressReport) -> ProgressReport:
    """Return a progress report whose stages have a prefix."""

    def prefixed(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        report(prefix + stage, done, total, note)

    return prefixed


def summarize(study: Study, options: StudyOptions, folder: Path) -> StudySummary:
    """Draw a study's figures and write its findings, from the rows in its folder; no model is loaded."""
    parts = [path for path in sorted(folder.iterdir()) if is_results(path)]
    findings: list[str] = []
    figures: list[SummaryFigure] = []
    if parts:
        outcome = StudyOutcome(collect(parts), folder)
        for figure in study.figures(options, outcome):
            if isinstance(figure, SummaryFigure):
                figures.append(figure)
            elif written := draw_figure(figure, folder):
                figures.append(SummaryFigure(written[0].name, figure.title, figure.alt))
        findings = study.all_findings(options, outcome)
    summary = StudySummary(study.name, study.title, study.question, study.paper, tuple(findings), tuple(figures))
    summary.write(folder)
    return summary


@dataclass(frozen=True)
class StudyCost:
    """The estimated cost of one experiment; rows that another study will provide are not counted again."""

    study: str
    part: str
    examples: int
    tokens: int
    seconds: float | None


@dataclass(frozen=True, eq=False)
class StudyCosts:
    """Estimates studies one after the other; ``plans`` are the manifests of those whose rows can be reused."""

    context: StudyContext
    shard: RunShard | None = None
    plans: list[dict[str, Any]] = field(default_factory=list)

    def estimate(self, study: Study) -> list[StudyCost]:
        """Count the forward tokens that are still to be computed, and time some prompts of each experiment."""
        return [self._estimate_part(study, part) for part in self.context.parts(study)]

    def _estimate_part(self, study: Study, part: StudyPart) -> StudyCost:
        experiment = self.context.experiment_context(self.context.experiment(study, part))
        plan, folder = manifest(experiment), self.context.results_folder(study, part)
        done: set[tuple[str, str]] = set()
        if (folder / MANIFEST).is_file():
            stored = ResultsFolder.open(folder)
            check_same(stored.manifest, plan, folder)
            done = stored.done()
        for other in self.plans:
            for name in same_cells(plan, other):
                # A smaller experiment has the first examples of a larger one.
                reused = experiment.examples[task_of(name)][: other["cells"][name]["examples"]]
                done |= {(name, example.id) for example in reused}
        cost = estimate(Runner(experiment), done, self.shard)
        self.plans.append(plan)
        examples, tokens = sum(cost.examples.values()), sum(cost.tokens.values())
        return StudyCost(study.name, part.name, examples, tokens, cost.seconds)
