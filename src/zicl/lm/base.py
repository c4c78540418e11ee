"""The interface of a language model: the log-likelihood of every scored token, or an error; never a silent 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from zicl._util.progress import Progress
from zicl.prompt.builder import BranchScores, Prompt
from zicl.prompt.tokens import Tokenizer

DEFAULT_LM = "smollm2-135m"


class LanguageModel(Protocol):
    """A model that scores prompts.

    ``identity`` is a hash of weights and tokenizer, ``context`` the number of tokens of the longest prompt, if known,
    and ``adds_bos`` says whether prompts begin with the beginning-of-sequence token.
    """

    name: str
    identity: str
    revision: str
    context: int | None
    adds_bos: bool

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that prompts are written with."""
        ...

    def score(self, prompts: Sequence[Prompt], progress: Progress | None = None) -> list[BranchScores]:
        """Return the log-likelihood of each scored token of each branch of each prompt, in the order of the prompts."""
        ...
