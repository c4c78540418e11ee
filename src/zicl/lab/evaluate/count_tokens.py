"""Counting the tokens an evaluation would feed to its model, without running it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from zicl.lm.base import BranchScores, LanguageModel, Progress
from zicl.lm.packing import pack
from zicl.prompt.builder import Prompt
from zicl.prompt.tokens import Tokenizer


def fed(prompts: Sequence[Prompt]) -> int:
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
        self.tokens += fed(prompts)
        return [tuple(np.zeros(len(b.scored), dtype=np.float32) for b in prompt.branches) for prompt in prompts]
