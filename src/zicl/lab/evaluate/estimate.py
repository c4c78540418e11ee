"""Estimate the cost of a run before it begins: count the tokens of a few prompts, and time ten of them."""

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

# Prompts built for each kind of cell, and prompts timed in total.
_PER_KIND, _TIMED = 3, 10


def count_tokens(prompts: Sequence[Prompt]) -> int:
    """Return the tokens of prompts that are scored together, with a shared prefix counted once."""
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
    """A language model that counts tokens instead of scoring them: every log-likelihood is 0.

    A prefix shared by the prompts of one call counts once, as the transformers backend computes it once.
    """

    def __init__(self, lm: LanguageModel) -> None:
        self.name, self.identity, self.revision = lm.name, lm.identity, lm.revision
        self.context, self.adds_bos, self.tokenizer = lm.context, lm.adds_bos, lm.tokenizer
        self.tokens = 0

    tokenizer: Tokenizer

    def score(self, prompts: Sequence[Prompt], progress: Progress | None = None) -> list[BranchScores]:
        """Return one zero per scored token."""
        self.tokens += count_tokens(prompts)
        return [tuple(np.zeros(len(b.scored), dtype=np.float32) for b in prompt.branches) for prompt in prompts]


def forward_tokens(prompts: Sequence[Prompt], count: int, *, trees: bool = True) -> int:
    """Return the forward tokens of ``count`` prompts like these, with a prefix shared by all counted once.

    A model that cannot read ``trees`` gets the full prompt once per label.
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
    """The examples and tokens of each cell, and the rate measured on this machine.

    For a model behind a server, the tokens are those sent, once per label; the rate is None, as nothing is sent.
    """

    examples: dict[str, int]
    tokens: dict[str, int]
    tokens_per_second: float | None

    @property
    def seconds(self) -> float | None:
        """Expected seconds of the run on this machine."""
        if self.tokens_per_second is None:
            return None
        return sum(self.tokens.values()) / self.tokens_per_second if self.tokens_per_second else 0.0


def estimate(runner: Runner, done: set[tuple[str, str]], shard: RunShard | None = None) -> CostEstimate:
    """Build a few prompts of each kind of cell, count their tokens, and time ten of them."""
    context = runner.context
    # An experiment of controls loads no model.
    lm = context.lm if context.needs("needs_lm") else None
    trees = getattr(lm, "supports_trees", True)
    sampled: dict[tuple[str, ...], list[list[Prompt]]] = {}
    examples, tokens = dict[str, int](), dict[str, int]()
    missing: Counter[PlanCell] = Counter()
    for batch in batches(context.experiment, context.examples, shard):
        missing[batch.cell] += sum((batch.cell.key, example.id) not in done for example in batch.examples)
    for cell, left in missing.items():
        rows = context.examples[cell.task]
        if not left:
            continue
        kind = (cell.task, cell.method, cell.template, cell.inference)
        if kind not in sampled:
            sampled[kind] = runner.prompts(cell, rows[:: max(1, len(rows) // _PER_KIND)][:_PER_KIND])
        examples[cell.key] = left
        if isinstance(lm, RemoteLanguageModel):
            each = [sum(map(lm.sent, prompts)) / len(prompts) for prompts in sampled[kind] if prompts]
            tokens[cell.key] = round(sum(each) * left)
        else:
            tokens[cell.key] = sum(forward_tokens(prompts, left, trees=trees) for prompts in sampled[kind])
    if isinstance(lm, RemoteLanguageModel):
        return CostEstimate(examples, tokens, None)
    timed = [prompts[0] for pipelines in sampled.values() for prompts in pipelines]
    timed = timed[:: max(1, len(timed) // _TIMED)][:_TIMED]
    if not timed or lm is None:
        return CostEstimate(examples, tokens, 0.0)
    # The first call is slower: it allocates memory.
    lm.score(timed[:1])
    started = time.perf_counter()
    for prompt in timed:
        lm.score([prompt])
    scored = sum(len(pack([p])) if trees else _unshared_tokens(p) for p in timed)
    return CostEstimate(examples, tokens, scored / (time.perf_counter() - started))
