"""A study, read from top to bottom: its experiments into result folders, then what their rows say."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zicl._util.progress import Report
from zicl.lab.evaluate.cost import estimate
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.plan import Shard
from zicl.lab.evaluate.run import Runner, evaluate
from zicl.lab.evaluate.store import MANIFEST, Results, check_same
from zicl.lab.report.study_summary import Told
from zicl.lab.study.base import Part, Study
from zicl.lab.study.context import Bench
from zicl.lab.study.reuse import borrow, same_cells, task_of
from zicl.lab.study.summarize import tell


@dataclass(frozen=True)
class Ran:
    """What a run of a study did: rows computed, taken from another study, and there before."""

    study: str
    computed: int
    borrowed: int
    kept: int
    seconds: float
    complete: bool
    told: Told


def run_study(study: Study, bench: Bench, *, shard: Shard | None = None) -> Ran:
    """Run what is missing of a study, and write what is known then."""
    computed = borrowed = kept = 0
    seconds, complete = 0.0, True
    for part in bench.parts(study):
        folder = bench.results(study, part)
        world = bench.world(bench.experiment(study, part))
        world.check()
        taken = borrow(world, folder, bench.others(folder), shard)
        found = evaluate(world, folder, shard=shard, report=_under(f"{study.name}/{part.name}", bench.report))
        computed, borrowed = computed + found.computed, borrowed + taken
        kept += max(0, found.kept - taken)
        seconds, complete = seconds + found.seconds, complete and found.complete
    return Ran(study.name, computed, borrowed, kept, seconds, complete, tell_study(study, bench))


def tell_study(study: Study, bench: Bench) -> Told:
    """Figures and findings of the rows there are."""
    return tell(study, bench.settings.options(study), bench.folder / study.name)


@dataclass(frozen=True)
class Cost:
    """What an experiment of a study would take; rows that another one brings are not counted twice."""

    study: str
    part: str
    examples: int
    tokens: int
    seconds: float | None


@dataclass(frozen=True, eq=False)
class Costs:
    """Counts studies one after the other: ``before`` are the plans of those whose rows will be there."""

    bench: Bench
    shard: Shard | None = None
    before: list[dict[str, Any]] = field(default_factory=list)

    def of(self, study: Study) -> list[Cost]:
        """Count the forward tokens of what is still to be computed, and time some prompts of each experiment."""
        return [self._part(study, part) for part in self.bench.parts(study)]

    def _part(self, study: Study, part: Part) -> Cost:
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
        return Cost(study.name, part.name, examples, tokens, cost.seconds)


def _done(folder: Path, plan: dict[str, Any]) -> set[tuple[str, str]]:
    if not (folder / MANIFEST).is_file():
        return set()
    stored = Results.open(folder)
    check_same(stored.manifest, plan, folder)
    return stored.done()


def _under(name: str, report: Report) -> Report:
    """A report whose stages are those of one experiment."""

    def named(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        report(f"{name}: {stage}", done, total, note)

    return named
