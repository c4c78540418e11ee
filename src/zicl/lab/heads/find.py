"""Where the labels are: a direct prompt up to its answer, with the places of the labels its demonstrations show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from zicl._util.progress import Progress
from zicl._util.random import rng
from zicl.exceptions import ConfigError, LabelError, PromptError
from zicl.lab.heads.scores import FoundOn, HeadScores
from zicl.lm.base import LanguageModel
from zicl.lm.heads import Head, head_layout, last_token_attention
from zicl.prompt.builder import PromptBuilder
from zicl.prompt.tokens import Tokenizer, tokenize
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, sort_by_similarity, too_few_error
from zicl.score.pipeline import Pipeline
from zicl.score.results import PreparedInput


@dataclass(frozen=True)
class MarkedPrompt:
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

        >>> MarkedPrompt((5, 6, 7, 8), (1, 2), ("good", "bad"), "good", classes=3).weights.tolist()
        [1.0, -0.5]
        """
        return np.array([1.0 if label == self.answer else -1.0 / (self.classes - 1) for label in self.shown])


def mark_labels(prepared: PreparedInput, builder: PromptBuilder, answer: str) -> MarkedPrompt:
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
    return MarkedPrompt(written[:before], tuple(keys), shown, answer, len(prepared.labels))


def first_token_behind(tokenizer: Tokenizer, tokens: Sequence[int], before: str) -> int:
    """The number of the first token that reaches beyond the text ``before``; a space may be a part of it."""
    for number in range(len(tokens)):
        if len(tokenizer.decode(tokens[: number + 1])) > len(before):
            return number
    raise PromptError(f"the label line ends with {before!r}", hint="give the label at least a letter")


def _label_line(builder: PromptBuilder, words: str) -> tuple[int, ...]:
    return tokenize(builder.tokenizer, builder.template.joint + builder.template.label_line(words)).tokens


def _first_token(builder: PromptBuilder, line: Sequence[int]) -> int:
    """Which token of a label line is the first that holds some of the label."""
    before = builder.template.joint + builder.template.label.partition("{label}")[0]
    return first_token_behind(builder.tokenizer, line, before)


def _check(prepared: PreparedInput, answer: str) -> None:
    if prepared.inference != "direct":
        raise ConfigError(
            "heads are found on direct prompts: in channel ones no label is predicted",
            hint="set the inference to 'direct'",
        )
    if answer not in prepared.labels.names:
        raise LabelError(f"there is no label {answer!r}", hint=f"there are: {', '.join(prepared.labels.names)}")
    if not any(demo.kept and demo.words for demo in prepared.demos):
        raise PromptError("the prompt shows no label", hint="raise k or the limit of tokens, or show labels")


# -- The prompts that heads are found on: nearest training examples, as many of each label, in random order.


@dataclass(frozen=True)
class NearestPerLabel:
    """The nearest rows, as many of each label; ``by_row`` holds the rows' labels."""

    by_row: tuple[str, ...]
    exclude_self: bool = True
    draws: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    needs_neighbours: ClassVar[bool] = False

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Exactly ``k`` rows with distinct texts, nearest first."""
        keep, found = CandidateFilter(index, query, exclude_self=self.exclude_self), list[Retrieved]()
        left = dict.fromkeys(self.by_row, k // len(set(self.by_row)))
        for hit in keep.hits():
            if len(found) == k:
                break
            if left[self.by_row[hit.row]] and keep.take(hit.row):
                left[self.by_row[hit.row]] -= 1
                found.append(Retrieved(hit.row, hit.row, hit.similarity))
        if len(found) < k:
            few = min(Counter(self.by_row).items(), key=lambda each: each[1])
            why = f"as many of each label are shown, and of {few[0]!r} there are {few[1]} examples"
            raise too_few_error(len(found), k, why, "use a smaller k, or name more training examples")
        return sort_by_similarity(found)


def balanced_pipeline(pipeline: Pipeline, by_row: Sequence[str], *, exclude_self: bool = True) -> Pipeline:
    """A pipeline over training examples with these labels, showing as many of each; k becomes a multiple of theirs."""
    classes = len(set(by_row))
    return replace(
        pipeline,
        retriever=NearestPerLabel(tuple(by_row), exclude_self),
        k=max(pipeline.k // classes, 1) * classes,
        order="shuffled",
    )


# -- The finder: which heads look, from before the answer, at the labels that are the same as the answer.


def find_heads(
    lm: LanguageModel,
    prompts: Sequence[MarkedPrompt],
    *,
    task: str = "",
    found_on: FoundOn = "training",
    progress: Progress | None = None,
) -> HeadScores:
    """The prefix-matching score of every head, one prompt after the other."""
    if not prompts:
        raise ConfigError("no prompts were given to find heads on", hint="give some training examples of a task")
    places = head_layout(lm)
    total = np.zeros((places.layers, places.heads))
    for prompt in prompts:
        seen = last_token_attention(lm, prompt.tokens)[:, :, list(prompt.keys)]
        total += seen.astype(np.float64) @ prompt.weights
        if progress:
            progress(1)
    scores = tuple(tuple(row) for row in (total / len(prompts)).tolist())
    return HeadScores(
        model=lm.name, identity=lm.identity, task=task, prompts=len(prompts), found_on=found_on, scores=scores
    )


# -- What found heads are compared with: random ones of the same layers.


def random_like(
    found: Sequence[Head], shape: tuple[int, int], *, draws: int, seed: int = 0
) -> tuple[tuple[Head, ...], ...]:
    """``draws`` times as many other heads as were found, each from the layer of one of these.

    ``shape`` is the model's: layers and heads. Where found heads fill so much of a layer that too few others are left
    in it, the nearest layer that has some stands in, the lower of two.
    """
    layers, heads = shape
    for head in found:
        if not (0 <= head.layer < layers and 0 <= head.head < heads):
            raise ConfigError(f"there is no head {head} among {layers} layers of {heads}", hint="find the heads anew")
    if 2 * len(set(found)) > layers * heads:
        raise ConfigError(
            f"{len(set(found))} of {layers * heads} heads were found, so that too few others are left to compare with",
            hint="silence fewer heads",
        )
    return tuple(_draw(found, shape, rng(seed, draw, "random heads")) for draw in range(draws))


def _draw(found: Sequence[Head], shape: tuple[int, int], generator: np.random.Generator) -> tuple[Head, ...]:
    layers, heads = shape
    free = {layer: sorted(set(range(heads)) - {h.head for h in found if h.layer == layer}) for layer in range(layers)}
    drawn = []
    for wanted in dict.fromkeys(found):
        layer = min((n for n in free if free[n]), key=lambda n: (abs(n - wanted.layer), n))
        drawn.append(Head(layer, free[layer].pop(int(generator.integers(len(free[layer]))))))
    return tuple(drawn)
