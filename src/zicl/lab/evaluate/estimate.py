"""Estimate what a run costs before it begins: count the tokens of a few prompts and time ten of them."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zicl._util.progress import Progress
from zicl.lab.evaluate.plan import PlanCell, RunShard, batches
from zicl.lm.base import LanguageModel
from zicl.lm.packing import pack
from zicl.lm.remote.model import RemoteLanguageModel
from zicl.prompt.builder import BranchScores, Prompt
from zicl.prompt.tokens import Tokenizer

if TYPE_CHECKING:
    from zicl.lab.evaluate.run import Runner

# Prompts written for each kind of cell, and prompts timed in all.
_PER_CELL, _PROBED = 3, 10


def count_tokens(prompts: Sequence[Prompt]) -> int:
    """The tokens of prompts that are scored together: a prefix that several share once, everything else each."""
    groups: dict[tuple[int, ...], list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        groups[prompt.prefix.tokens].append(prompt)
    tokens = 0
    for prefix, members in groups.items():
        if len(members) == 1 or not prefix:
            tokens += sum(len(pack([prompt])) for prompt in members)
        else:
            tokens += len(prefix) + sum(len(pack([prompt], prefix_computed=True)) for prompt in members)
    return tokens


class TokenCounter:
    """A language model that counts in place of scoring: every log-likelihood is 0.

    What is shared by the prompts of one call is counted once, as the real backend computes it once.
    """

    def __init__(self, lm: LanguageModel) -> None:
        self.name, self.identity, self.revision = lm.name, lm.identity, lm.revision
        self.context, self.adds_bos, self.tokenizer = lm.context, lm.adds_bos, lm.tokenizer
        self.tokens = 0

    tokenizer: Tokenizer

    def score(self, prompts: Sequence[Prompt], progress: Progress | None = None) -> list[BranchScores]:
        """Zeros, one a scored token."""
        self.tokens += count_tokens(prompts)
        return [tuple(np.zeros(len(b.scored), dtype=np.float32) for b in prompt.branches) for prompt in prompts]


def forward_tokens(prompts: Sequence[Prompt], count: int, *, trees: bool = True) -> int:
    """Tokens that ``count`` prompts like these feed: a prefix they all share once, everything else each.

    A model that cannot read ``trees`` is fed the whole of every label's prompt.
    """
    if not prompts:
        return 0
    if not trees:
        return round(sum(map(_unshared_tokens, prompts)) / len(prompts) * count)
    prefixes = {prompt.prefix.tokens for prompt in prompts}
    shared = len(prompts[0].prefix) if len(prefixes) == 1 and len(prompts) > 1 else 0
    return shared + round((count_tokens(prompts) - shared) / len(prompts) * count)


def _unshared_tokens(prompt: Prompt) -> int:
    return sum(len(prompt.tokens(branch)) for branch in range(len(prompt.branches)))


@dataclass(frozen=True)
class CostEstimate:
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


def estimate(runner: Runner, done: set[tuple[str, str]], shard: RunShard | None = None) -> CostEstimate:
    """Write a few prompts of each kind of cell, count their tokens, and time ten of them."""
    world = runner.world
    # Controls may do without a model.
    lm = world.lm if world.needs("needs_lm") else None
    trees = getattr(lm, "reads_trees", True)
    sampled: dict[tuple[str, ...], list[list[Prompt]]] = {}
    examples, tokens = dict[str, int](), dict[str, int]()
    asked: Counter[PlanCell] = Counter()
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
        return CostEstimate(examples, tokens, None)
    probed = [prompts[0] for ways in sampled.values() for prompts in ways]
    probed = probed[:: max(1, len(probed) // _PROBED)][:_PROBED]
    if not probed or lm is None:
        return CostEstimate(examples, tokens, 0.0)
    lm.score(probed[:1])
    begun = time.perf_counter()
    for prompt in probed:
        lm.score([prompt])
    read = sum(len(pack([p])) if trees else _unshared_tokens(p) for p in probed)
    return CostEstimate(examples, tokens, read / (time.perf_counter() - begun))
