"""Where the labels are: a direct prompt up to its answer, with the places of the labels its demonstrations show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zicl.exceptions import ConfigError, LabelError, PromptError
from zicl.prompt.builder import PromptBuilder
from zicl.prompt.tokens import Tokenizer, segment
from zicl.score.results import Prepared


@dataclass(frozen=True)
class Marked:
    """The ``tokens`` of a prompt up to the one that predicts the answer.

    ``keys`` are the places of the first token of each displayed label, ``shown`` the class of each; ``answer`` is the
    test label, one of ``classes``.
    """

    tokens: tuple[int, ...]
    keys: tuple[int, ...]
    shown: tuple[str, ...]
    answer: str
    classes: int

    @property
    def weights(self) -> NDArray[np.float64]:
        """What attention to each key counts: 1 for the answer's class, all others together as much against it.

        >>> Marked((5, 6, 7, 8), (1, 2), ("good", "bad"), "good", classes=3).weights.tolist()
        [1.0, -0.5]
        """
        return np.array([1.0 if label == self.answer else -1.0 / (self.classes - 1) for label in self.shown])


def mark(prepared: Prepared, builder: PromptBuilder, answer: str) -> Marked:
    """The prompt that ``builder`` wrote for a text whose label is ``answer``."""
    _check(prepared, answer)
    prompt, number = prepared.prompt, prepared.labels.names.index(answer)
    demos = [demo for demo in prepared.demos if demo.kept]
    keys = []
    for demo, end in zip(demos, prompt.ends, strict=True):
        # A demonstration of a direct prompt ends in its label line.
        line = _label_line(builder, demo.words)
        keys.append(end - len(line) + _first_token(builder, line))
    written, scored = prompt.tokens(number), prompt.branches[number].scored.tokens
    before = len(written) - len(scored) + _first_token(builder, scored)
    shown = tuple(demo.label for demo in demos)
    return Marked(written[:before], tuple(keys), shown, answer, len(prepared.labels))


def first_token_behind(tokenizer: Tokenizer, tokens: Sequence[int], before: str) -> int:
    """The number of the first token that reaches beyond the text ``before``; a space may be a part of it."""
    for number in range(len(tokens)):
        if len(tokenizer.decode(tokens[: number + 1])) > len(before):
            return number
    raise PromptError(f"the label line ends with {before!r}", hint="give the label at least a letter")


def _label_line(builder: PromptBuilder, words: str) -> tuple[int, ...]:
    return segment(builder.tokenizer, builder.template.joint + builder.template.label_line(words)).tokens


def _first_token(builder: PromptBuilder, line: Sequence[int]) -> int:
    """Which token of a label line is the first that holds some of the label."""
    before = builder.template.joint + builder.template.label.partition("{label}")[0]
    return first_token_behind(builder.tokenizer, line, before)


def _check(prepared: Prepared, answer: str) -> None:
    if prepared.inference != "direct":
        raise ConfigError(
            "heads are found on direct prompts: in channel ones no label is predicted",
            hint="set the inference to 'direct'",
        )
    if answer not in prepared.labels.names:
        raise LabelError(f"there is no label {answer!r}", hint=f"there are: {', '.join(prepared.labels.names)}")
    if not any(demo.kept and demo.words for demo in prepared.demos):
        raise PromptError("the prompt shows no label", hint="raise k or the limit of tokens, or show labels")
