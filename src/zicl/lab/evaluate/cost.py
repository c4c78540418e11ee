"""What a run costs: measured as it goes for an honest time left, and estimated before it begins."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zicl.lab.evaluate.count_tokens import fed
from zicl.lab.evaluate.plan import Batch, Cell, Shard, batches
from zicl.lm.packing import pack
from zicl.lm.remote.model import RemoteLanguageModel

if TYPE_CHECKING:
    from zicl.lab.evaluate.run import Runner
    from zicl.prompt.builder import Prompt

# Seconds an example before anything is measured, only to begin with: prompts of their own, and all others.
_GUESS_PROMPT, _GUESS_OTHER = 1.0, 0.1
_PER_CELL, _PROBED = 3, 10


class Costs:
    """Seconds done and seconds in all. What is left is counted with what like cells took so far."""

    def __init__(self, todo: Sequence[Batch]) -> None:
        self._left: Counter[Cell] = Counter()
        for batch in todo:
            self._left[batch.cell] += len(batch.examples)
        self._cells, self._examples = len(self._left), 0
        self._seconds: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._begun = self._last = time.monotonic()

    @property
    def done(self) -> float:
        """Seconds so far."""
        return self._last - self._begun

    @property
    def total(self) -> float:
        """Seconds in all, by what was measured."""
        return self.done + sum(self._each(cell) * count for cell, count in self._left.items())

    def spent(self, batch: Batch) -> None:
        """A batch is done."""
        now = time.monotonic()
        for key in _alike(batch.cell):
            self._seconds[key][0] += now - self._last
            self._seconds[key][1] += len(batch.examples)
        self._examples += len(batch.examples)
        self._last = now
        self._left[batch.cell] -= len(batch.examples)
        if not self._left[batch.cell]:
            del self._left[batch.cell]

    def note(self, batch: Batch) -> str:
        """Where the run is."""
        rate = f", {self._examples / self.done:.1f} examples/s" if self.done else ""
        return f"{self._cells - len(self._left)}/{self._cells} cells{rate}, {batch.cell.key}"

    def _each(self, cell: Cell) -> float:
        for key in _alike(cell):
            seconds, count = self._seconds[key]
            if count:
                return seconds / count
        return _GUESS_PROMPT if cell.inference != "none" else _GUESS_OTHER


def _alike(cell: Cell) -> list[tuple[str, ...]]:
    """Cells whose examples cost about as much, the most alike first."""
    return [(cell.task, cell.method, cell.template, cell.inference), (cell.method, cell.inference)]


def forward_tokens(prompts: Sequence[Prompt], count: int, *, trees: bool = True) -> int:
    """Tokens that ``count`` prompts like these feed: a prefix they all share once, everything else each.

    A model that cannot read ``trees`` is fed the whole of every label's prompt.
    """
    if not prompts:
        return 0
    if not trees:
        return round(sum(map(_plain, prompts)) / len(prompts) * count)
    prefixes = {prompt.prefix.tokens for prompt in prompts}
    shared = len(prompts[0].prefix) if len(prefixes) == 1 and len(prompts) > 1 else 0
    return shared + round((fed(prompts) - shared) / len(prompts) * count)


def _plain(prompt: Prompt) -> int:
    return sum(len(prompt.tokens(branch)) for branch in range(len(prompt.branches)))


@dataclass(frozen=True)
class Estimate:
    """What a run would take: tokens by cell, and the rate a probe of this machine gave.

    Of a model behind a server they are those it is sent, once for every label, and no rate: nothing is asked.
    """

    examples: dict[str, int]
    tokens: dict[str, int]
    tokens_per_second: float | None

    @property
    def seconds(self) -> float | None:
        """The whole run on this machine."""
        if self.tokens_per_second is None:
            return None
        return sum(self.tokens.values()) / self.tokens_per_second if self.tokens_per_second else 0.0


def estimate(runner: Runner, done: set[tuple[str, str]], shard: Shard | None = None) -> Estimate:
    """Write a few prompts of each kind of cell, count their tokens, and time ten of them."""
    world = runner.world
    # Controls may do without a model.
    lm = world.lm if world.needs("needs_lm") else None
    trees = getattr(lm, "reads_trees", True)
    sampled: dict[tuple[str, ...], list[list[Prompt]]] = {}
    examples, tokens = dict[str, int](), dict[str, int]()
    asked: Counter[Cell] = Counter()
    for batch in batches(world.experiment, world.examples, shard):
        asked[batch.cell] += sum((batch.cell.key, example.id) not in done for example in batch.examples)
    for cell, left in asked.items():
        rows = world.examples[cell.task]
        if not left:
            continue
        kind = (cell.task, cell.method, cell.template, cell.inference)
        if kind not in sampled:
            sampled[kind] = runner.prompts(cell, rows[:: max(1, len(rows) // _PER_CELL)][:_PER_CELL])
        examples[cell.key] = left
        if isinstance(lm, RemoteLanguageModel):
            each = [sum(map(lm.sent, prompts)) / len(prompts) for prompts in sampled[kind] if prompts]
            tokens[cell.key] = round(sum(each) * left)
        else:
            tokens[cell.key] = sum(forward_tokens(prompts, left, trees=trees) for prompts in sampled[kind])
    if isinstance(lm, RemoteLanguageModel):
        return Estimate(examples, tokens, None)
    probed = [prompts[0] for ways in sampled.values() for prompts in ways]
    probed = probed[:: max(1, len(probed) // _PROBED)][:_PROBED]
    if not probed or lm is None:
        return Estimate(examples, tokens, 0.0)
    lm.score(probed[:1])
    begun = time.perf_counter()
    for prompt in probed:
        lm.score([prompt])
    read = sum(len(pack([p])) if trees else _plain(p) for p in probed)
    return Estimate(examples, tokens, read / (time.perf_counter() - begun))
