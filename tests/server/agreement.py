"""Real prompts, and how alike two backends score them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from zicl._util.random import rng
from zicl.apps.demo import reviews
from zicl.prompt.builder import BranchScores, LabelledText, Prompt, PromptBuilder
from zicl.prompt.template import get_template

COUNT, WORDS = 50, ("terrible", "great")


def real_prompts(
    lm: Any, inference: str, *, demonstrations: int = 2, longest: int = 60, words: tuple[str, ...] = WORDS
) -> Iterator[Prompt]:
    """Film-review lines as demonstrations, with synonyms of drawn labels as Z-ICL has them, and inputs.

    Few and short by default: llama-cpp-python sorts its vocabulary per token.
    """
    texts = [text for text, _ in reviews("rotten_tomatoes", offline=True) if len(text) < longest]
    builder = PromptBuilder(lm.tokenizer, get_template("review"), inference, context=lm.context, bos=lm.adds_bos)
    for number in range(COUNT):
        *chosen, text = texts[7 * number : 7 * number + demonstrations + 1]
        drawn = rng(100, str(number), "labels").choice(["bad", "good"], size=demonstrations).tolist()
        demos = [LabelledText(text, word) for text, word in zip(chosen, drawn, strict=True)]
        yield builder.build(text, demos, words)


def margins(scores: list[BranchScores]) -> np.ndarray:
    """How much likelier the second label is than the first."""
    sums = np.array([[row.sum(dtype=np.float64) for row in branches] for branches in scores])
    return sums[:, 1] - sums[:, 0]


def differences(ours: list[BranchScores], theirs: list[BranchScores]) -> np.ndarray:
    """The difference of every token's log-likelihood, without its sign."""
    pairs = [pair for one in zip(ours, theirs, strict=True) for pair in zip(*one, strict=True)]
    return np.concatenate([np.abs(a - b) for a, b in pairs])


def agreement(ours: np.ndarray, theirs: np.ndarray) -> dict[str, Any]:
    """How alike two backends' margins are."""
    from scipy.stats import spearmanr

    apart = theirs - ours
    return {
        "prompts": len(ours),
        "same winner": int((np.sign(ours) == np.sign(theirs)).sum()),
        "rank correlation": round(float(spearmanr(ours, theirs).statistic), 5),
        "largest difference of a margin": round(float(np.abs(apart).max()), 5),
        "typical difference": round(float(np.sqrt(np.mean(apart**2))), 5),
    }
