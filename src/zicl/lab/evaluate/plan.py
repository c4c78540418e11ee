"""The plan of a run: which cells, in which order, in which batches. It depends on the configuration alone."""

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
    """One task, method, template, inference and seed; without a seed where nothing is drawn."""

    task: str
    method: str
    template: str
    inference: str
    seed: int | None

    @property
    def key(self) -> str:
        """Its name."""
        return cell_key(self.task, self.method, self.template, self.inference, self.seed)


@dataclass(frozen=True)
class PlanBatch:
    """Examples of a cell that are run together and written whole; of an extended one, ``held`` are there already."""

    cell: PlanCell
    number: int
    examples: tuple[Example, ...]
    held: int = 0

    @property
    def name(self) -> str:
        """The name of its file: what is new of an extended batch goes into one of its own."""
        return f"{self.cell.key.replace('/', '.')}.{self.number:04d}" + (f"-{self.held}" if self.held else "")

    def left(self, done: Container[tuple[str, str]]) -> PlanBatch:
        """What of it is still to be run."""
        left = tuple(example for example in self.examples if (self.cell.key, example.id) not in done)
        return replace(self, examples=left, held=len(self.examples) - len(left))


@dataclass(frozen=True)
class RunShard:
    """The i-th of n parts of a plan, counted from 1."""

    index: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> RunShard:
        """From ``2/8``."""
        index, slash, count = text.partition("/")
        if not slash or not index.isdecimal() or not count.isdecimal() or not 1 <= int(index) <= int(count):
            raise UsageError(f"--shard {text!r}: expected I/N with I from 1 to N", hint="for example --shard 2/8")
        return cls(int(index), int(count))


def cells(experiment: Experiment) -> list[PlanCell]:
    """All cells: what is free of seeds first, then seed by seed, so that early rows already make a whole table."""
    found: list[tuple[int, PlanCell]] = []
    for task in experiment.tasks:
        for name in experiment.methods:
            method = experiment.method(name)
            prompted = method.kind == "prompt"
            for template in experiment.templates if prompted else ("task",):
                for inference in method.inferences or experiment.inferences if prompted else (NO_INFERENCE,):
                    seeds: Sequence[int | None] = experiment.seeds_of(inference) if method.seeded else (None,)
                    for rank, seed in enumerate(seeds):
                        cell = PlanCell(task, name, template, inference, seed)
                        found.append((-1 if seed is None else rank, cell))
    return [cell for _, cell in sorted(found, key=lambda item: item[0])]


def batches(
    experiment: Experiment, examples: Mapping[str, Sequence[Example]], shard: RunShard | None = None
) -> Iterator[PlanBatch]:
    """The batches of a plan, or of one shard of it, in order."""
    part, count = shard or RunShard(), 0
    for cell in cells(experiment):
        rows = examples[cell.task]
        for number, start in enumerate(range(0, len(rows), experiment.batch)):
            if count % part.count == part.index - 1:
                yield PlanBatch(cell, number, tuple(rows[start : start + experiment.batch]))
            count += 1


def by_prompts(todo: Sequence[PlanBatch], methods: Mapping[str, ExperimentMethod]) -> list[PlanBatch]:
    """The same batches, those whose prompts are the same one after the other: methods that silence other heads.

    What the model makes of a prompt below these heads is then still at hand.
    """
    first: dict[str, str] = {}
    alike = {
        name: first.setdefault(method.model_copy(update={"silenced": (), "title": ""}).model_dump_json(), name)
        for name, method in methods.items()
    }
    groups: dict[tuple[PlanCell, int], list[PlanBatch]] = {}
    for batch in todo:
        groups.setdefault((replace(batch.cell, method=alike[batch.cell.method]), batch.number), []).append(batch)
    return [batch for group in groups.values() for batch in group]
