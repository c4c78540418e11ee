"""Plan a run: which cells, in which order, in which batches. The plan depends on the configuration alone."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from zicl.exceptions import UsageError
from zicl.lab.evaluate.examples import Example
from zicl.lab.evaluate.experiment import Experiment
from zicl.lab.evaluate.methods import ExperimentMethod
from zicl.lab.evaluate.store import NO_INFERENCE, cell_key


@dataclass(frozen=True)
class PlanCell:
    """One task, method, template, inference and seed; the seed is None where nothing is drawn."""

    task: str
    method: str
    template: str
    inference: str
    seed: int | None

    @property
    def key(self) -> str:
        """The name of the cell in manifests."""
        return cell_key(self.task, self.method, self.template, self.inference, self.seed)


@dataclass(frozen=True)
class PlanBatch:
    """Examples of a cell that are computed and written together; ``stored`` more of the batch are there already."""

    cell: PlanCell
    number: int
    examples: tuple[Example, ...]
    stored: int = 0

    @property
    def name(self) -> str:
        """The name of its segment; the rest of a partly stored batch gets another name."""
        return f"{self.cell.key.replace('/', '.')}.{self.number:04d}" + (f"-{self.stored}" if self.stored else "")

    def without(self, done: Container[tuple[str, str]]) -> PlanBatch:
        """Return the batch without the examples that are done."""
        rest = tuple(example for example in self.examples if (self.cell.key, example.id) not in done)
        return replace(self, examples=rest, stored=len(self.examples) - len(rest))


@dataclass(frozen=True)
class RunShard:
    """Part ``index`` of ``count`` parts of a plan, counted from 1."""

    index: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> RunShard:
        """Read a shard such as ``2/8``."""
        index, slash, count = text.partition("/")
        if not slash or not index.isdecimal() or not count.isdecimal() or not 1 <= int(index) <= int(count):
            raise UsageError(f"--shard {text!r}: expected I/N with I from 1 to N", hint="for example --shard 2/8")
        return cls(int(index), int(count))


def cells(experiment: Experiment) -> list[PlanCell]:
    """Return all cells: those without a seed first, then seed by seed, so that early rows fill the main table."""
    ranked: list[tuple[int, PlanCell]] = []
    for task in experiment.tasks:
        for name in experiment.methods:
            method = experiment.method(name)
            prompted = method.kind == "prompt"
            for template in experiment.templates if prompted else ("task",):
                for inference in method.inferences or experiment.inferences if prompted else (NO_INFERENCE,):
                    seeds: Sequence[int | None] = experiment.seeds_of(inference) if method.seeded else (None,)
                    for rank, seed in enumerate(seeds):
                        cell = PlanCell(task, name, template, inference, seed)
                        ranked.append((-1 if seed is None else rank, cell))
    return [cell for _, cell in sorted(ranked, key=lambda item: item[0])]


def batches(
    experiment: Experiment, examples: Mapping[str, Sequence[Example]], shard: RunShard | None = None
) -> Iterator[PlanBatch]:
    """Yield the batches of a plan, or of one shard of it, in order."""
    part, count = shard or RunShard(), 0
    for cell in cells(experiment):
        rows = examples[cell.task]
        for number, start in enumerate(range(0, len(rows), experiment.batch)):
            if count % part.count == part.index - 1:
                yield PlanBatch(cell, number, tuple(rows[start : start + experiment.batch]))
            count += 1


def group_by_prompts(todo: Sequence[PlanBatch], methods: Mapping[str, ExperimentMethod]) -> list[PlanBatch]:
    """Reorder batches so that those with the same prompts follow each other: methods that silence different heads.

    The hidden states below the silenced heads are then still cached.
    """
    first: dict[str, str] = {}
    same_prompts = {
        name: first.setdefault(method.model_copy(update={"silenced": (), "title": ""}).model_dump_json(), name)
        for name, method in methods.items()
    }
    groups: dict[tuple[PlanCell, int], list[PlanBatch]] = {}
    for batch in todo:
        cell = replace(batch.cell, method=same_prompts[batch.cell.method])
        groups.setdefault((cell, batch.number), []).append(batch)
    return [batch for group in groups.values() for batch in group]
