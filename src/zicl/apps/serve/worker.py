"""A group of works computed together: all prompts through the language model at once, a failure stays alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Protocol

from zicl.lm.base import BranchScores
from zicl.prompt.builder import Prompt

Score = Callable[[Sequence[Prompt]], Sequence[BranchScores]]


@dataclass(frozen=True)
class Begun:
    """What the language model is asked, and how its scores become an answer."""

    finish: Callable[[Sequence[BranchScores]], Any]
    prompts: Sequence[Prompt] = field(default=())


class Computable(Protocol):
    """Work that is begun, scored with others, and finished."""

    def begin(self) -> Begun:
        """Everything before the language model."""
        ...


def compute(works: Sequence[Computable], score: Score) -> list[Any]:
    """An answer or an exception for each work."""
    begun = [_tried(work.begin) for work in works]
    asked = [each for each in begun if isinstance(each, Begun)]
    scored = iter(_scored(asked, score))
    return [_finished(each, next(scored)) if isinstance(each, Begun) else each for each in begun]


def _tried(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except Exception as error:
        # It is the answer to whoever asked for this, and to nobody else.
        return error


def _scored(asked: Sequence[Begun], score: Score) -> list[Any]:
    together = _tried(lambda: score([prompt for each in asked for prompt in each.prompts]))
    if isinstance(together, Exception):
        # One of them did it: alone, only that one fails.
        return [_tried(partial(score, each.prompts)) for each in asked] if len(asked) > 1 else [together]
    scores = iter(together)
    return [list(islice(scores, len(each.prompts))) for each in asked]


def _finished(begun: Begun, scores: Any) -> Any:
    return scores if isinstance(scores, Exception) else _tried(lambda: begun.finish(scores))
