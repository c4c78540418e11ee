"""What zicl asks of a language model: the log-likelihood of every scored token, never a silent 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from zicl._util.progress import Progress
from zicl.prompt.builder import BranchScores, Prompt
from zicl.prompt.tokens import Tokenizer


class LanguageModel(Protocol):
    """Scores prompts. ``score`` answers in the order asked, whatever order it computes in."""

    name: str
    identity: str
    revision: str
    context: int | None
    adds_bos: bool

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer prompts are written with."""
        ...

    def score(self, prompts: Sequence[Prompt], progress: Progress | None = None) -> list[BranchScores]:
        """The log-likelihood of each scored token of each branch of each prompt."""
        ...
