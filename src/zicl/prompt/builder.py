"""Build prompts. A prompt is a tree: one prefix shared by all labels, then one branch per label.

    direct    demonstrations · input line ─┬─ [label line of "great"]
                                           └─ [label line of "terrible"]

    channel   demonstrations ─┬─ label line of "great"    · [input line]
                              └─ label line of "terrible" · [input line]

The part in brackets is scored, the rest is given. Every backend scores this tree, and explanations show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import rng
from zicl.config import Order
from zicl.exceptions import LabelError, PromptError
from zicl.inputs.beginnings import beginning
from zicl.inputs.pair import Pair, Text, text_parts
from zicl.prompt.template import Template
from zicl.prompt.tokens import EMPTY, Segment, Tokenizer, tokenize, truncate

Inference = Literal["direct", "channel"]
# One float32 array per branch of a prompt, with one log-likelihood per scored token.
BranchScores = tuple[NDArray[np.float32], ...]


@dataclass(frozen=True)
class LabelledText:
    """A sentence, or a pair of them, and the label words shown with it; empty words show no label line."""

    text: Text
    words: str


@dataclass(frozen=True)
class Branch:
    """One label's part of the tree: a given segment, then the scored one."""

    given: Segment
    scored: Segment

    @property
    def tokens(self) -> tuple[int, ...]:
        """Return the given and the scored tokens together."""
        return self.given.tokens + self.scored.tokens


@dataclass(frozen=True)
class Prompt:
    """The tree. ``prefix`` holds the demonstrations, ``stem`` the other tokens that all branches share.

    The branches of ``probes`` content-free inputs follow those of the input, one per label each. ``shown`` holds the
    numbers of the demonstrations that were kept, in prompt order, and ``ends`` where each of them ends in the prefix.
    """

    prefix: Segment
    stem: Segment
    branches: tuple[Branch, ...]
    kept: int = 0
    dropped: int = 0
    demos_cut: int = 0
    input_cut: bool = False
    probes: int = 0
    shown: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def text(self, branch: int) -> str:
        """Return the full text of one branch."""
        chosen = self.branches[branch]
        return self.prefix.text + self.stem.text + chosen.given.text + chosen.scored.text

    def tokens(self, branch: int) -> tuple[int, ...]:
        """Return all tokens of one branch."""
        return self.prefix.tokens + self.stem.tokens + self.branches[branch].tokens


class PromptScorer(Protocol):
    """The part of a language model that choosing label words needs: a tokenizer, and scores of prompts."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer that prompts are built with."""
        ...

    def score(self, prompts: Sequence[Prompt]) -> list[BranchScores]:
        """Return the log-likelihood of each scored token of each branch of each prompt."""
        ...


@dataclass(frozen=True)
class TokenLimits:
    """The maximum number of tokens of each part of a prompt."""

    per_demo: int = 256
    all_demos: int = 1024
    input: int = 256
    # All tokens of one label's prompt; more are cut from the left, whatever they belong to.
    prompt: int | None = None


@dataclass(frozen=True)
class PromptBuilder:
    """Build prompts for one tokenizer, template and inference."""

    tokenizer: Tokenizer
    template: Template
    inference: Inference
    limits: TokenLimits = TokenLimits()
    context: int | None = None
    bos: bool = False

    def build(
        self,
        text: Text,
        demos: Sequence[LabelledText],
        words: Sequence[str],
        probes: Sequence[Text] = (),
        order: Sequence[int] | None = None,
        keep: int | None = None,
    ) -> Prompt:
        """Return the prompt for ``text`` with ``demos`` (farthest first): one branch per word, for it and each probe.

        ``order`` lists the numbers of the demonstrations in prompt order; number ``keep`` is never dropped.
        """
        start = self._start()
        first = not demos
        input_text, input_cut = self._shorten_input(text, words)
        inputs = [input_text, *(self._shorten_input(probe, words)[0] for probe in probes)]
        stem, branches = self._branches(inputs, words, first=first)
        _check_distinct(branches[: len(words)], words, self.inference)

        blocks, demos_cut = self._demo_blocks(demos)
        room = self.limits.all_demos
        if self.context is not None:
            room = min(room, self.context - len(start) - len(stem) - max(len(b.tokens) for b in branches))
        shown = _drop_farthest(blocks, room, range(len(blocks)) if order is None else order, keep)
        if demos and not shown:
            # Without demonstrations the test input opens the prompt and has no separator before it.
            stem, branches = self._branches(inputs, words, first=True)
        prefix, ends = start, list[int]()
        for position, number in enumerate(shown):
            prefix = prefix + blocks[number][min(position, 1)]
            ends.append(len(prefix))
        return self._cut_left(
            Prompt(
                prefix,
                stem,
                branches,
                kept=len(shown),
                dropped=len(blocks) - len(shown),
                demos_cut=demos_cut,
                input_cut=input_cut,
                probes=len(probes),
                shown=tuple(shown),
                ends=tuple(ends),
            )
        )

    def _cut_left(self, prompt: Prompt) -> Prompt:
        """Cut every label's prompt to the limit from the left, token by token, whatever the tokens belong to.

        A beginning-of-sequence token stays where it is. Labels of different lengths lose different numbers of tokens,
        and then share no prefix.
        """
        limit = self.limits.prompt
        if limit is None:
            return prompt
        lengths = [len(prompt.tokens(branch)) for branch in range(len(prompt.branches))]
        if max(lengths) <= limit:
            return prompt
        excess = [max(0, length - limit) for length in lengths]
        scored = max(len(branch.scored) for branch in prompt.branches) + len(self._start())
        if any(cut > length - scored for cut, length in zip(excess, lengths, strict=True)):
            raise PromptError(
                f"the limit of {limit} tokens for a prompt leaves no room for the {scored} that are scored",
                hint="raise `prompt.tokens_prompt`, or lower `prompt.tokens_input`",
            )
        # A demonstration counts as shown while any label sees a part of it.
        kept = [number for number, end in enumerate(prompt.ends) if end - len(self._start()) > min(excess)]
        cut = replace(
            prompt,
            kept=len(kept),
            dropped=prompt.dropped + prompt.kept - len(kept),
            shown=tuple(prompt.shown[number] for number in kept),
        )
        if len(set(excess)) == 1 and excess[0] <= len(prompt.prefix) - len(self._start()):
            ends = tuple(prompt.ends[number] - excess[0] for number in kept)
            return replace(cut, prefix=self._without_first(prompt.prefix, excess[0]), ends=ends)
        given = (prompt.prefix + prompt.stem + branch.given for branch in prompt.branches)
        branches = tuple(
            replace(branch, given=self._without_first(segment, count))
            for branch, segment, count in zip(prompt.branches, given, excess, strict=True)
        )
        return replace(cut, prefix=EMPTY, stem=EMPTY, branches=branches, ends=())

    def _without_first(self, segment: Segment, count: int) -> Segment:
        """Return a segment without its first tokens after the start; half a character may be left there."""
        if not count:
            return segment
        start = self._start()
        rest = segment.tokens[len(start) + count :]
        return start + Segment(self.tokenizer.decode(rest), rest)

    def _start(self) -> Segment:
        if not self.bos:
            return EMPTY
        if self.tokenizer.bos is None:
            raise PromptError(
                f"{self.tokenizer.name} has no beginning-of-sequence token, but bos is on",
                hint='set bos to "auto" or "off"',
            )
        return Segment("", (self.tokenizer.bos,))

    def _line(self, before: str, text: str) -> Segment:
        return tokenize(self.tokenizer, before + text)

    def _branches(
        self, inputs: Sequence[Text], words: Sequence[str], *, first: bool
    ) -> tuple[Segment, tuple[Branch, ...]]:
        before = "" if first else self.template.separator
        joint = self.template.joint
        if self.inference == "direct":
            stems = [self._line(before, self.template.input_line(text)) for text in inputs]
            lines = [self._line(joint, self.template.label_line(word)) for word in words]
            if len(stems) == 1:
                return stems[0], tuple(Branch(EMPTY, line) for line in lines)
            return EMPTY, tuple(Branch(stem, line) for stem in stems for line in lines)
        lines = [self._line(before, self.template.label_line(word)) for word in words]
        scored = [self._line(joint, self.template.input_line(text)) for text in inputs]
        return EMPTY, tuple(Branch(line, text) for text in scored for line in lines)

    def _shorten_input(self, text: Text, words: Sequence[str]) -> tuple[Text, bool]:
        limit = self.limits.input
        if self.context is not None:
            template = self._line(self.template.separator, self.template.input_line("x"))
            labels = max(len(self._line(self.template.separator, self.template.label_line(w))) for w in words)
            limit = min(limit, self.context - len(template) - labels - 1)
        if limit < 1:
            raise PromptError(
                f"the label lines leave no room for the input in a context of {self.context} tokens",
                hint="use shorter label words, or a model with a longer context",
            )
        return self._cut(text, limit)

    def _cut(self, text: Text, limit: int) -> tuple[Text, bool]:
        """Cut a text to ``limit`` tokens and say whether it lost any; the longer half of a pair loses more."""
        parts = [self._beginning(part, limit) for part in text_parts(text)]
        lengths = [len(self.tokenizer.encode(part)) for part in parts]
        if sum(lengths) <= limit:
            return text, False
        if not isinstance(text, Pair):
            return truncate(self.tokenizer, parts[0], limit).text, True
        first = min(lengths[0], max(limit // 2, limit - lengths[1]))
        kept = [truncate(self.tokenizer, part, n).text for part, n in zip(parts, (first, limit - first), strict=True)]
        return Pair(*kept).strip(), True

    def _beginning(self, text: str, limit: int) -> str:
        return beginning(text, limit, lambda cut: len(self.tokenizer.encode(cut)))

    def _demo_blocks(self, demos: Sequence[LabelledText]) -> tuple[list[tuple[Segment, Segment]], int]:
        """Tokenize each demonstration twice: as the first of the prompt, and following another."""
        blocks, shortened = [], 0
        for long in demos:
            parts = (self._beginning(part, self.limits.per_demo) for part in text_parts(long.text))
            demo = replace(long, text=Pair(*parts) if isinstance(long.text, Pair) else next(parts))
            block = (
                self._demo("", demo.text, demo.words),
                self._demo(self.template.separator, demo.text, demo.words),
            )
            if len(block[0]) > self.limits.per_demo:
                block, shortened = self._cut_demo(demo), shortened + 1
            blocks.append(block)
        return blocks, shortened

    def cut_to_half_demo(self, text: str) -> str:
        """Cut a text to half the tokens of a demonstration, so that an answer leaves room for its question."""
        return str(self._cut(text, max(1, self.limits.per_demo // 2))[0])

    def _cut_demo(self, demo: LabelledText) -> tuple[Segment, Segment]:
        """Shorten the sentence, never the label line, until the demonstration is within its limit."""
        overhead = len(self._demo("", "x", demo.words)) - 1
        limit = self.limits.per_demo - overhead
        while limit > 0:
            text, _ = self._cut(demo.text, limit)
            block = self._demo("", text, demo.words)
            if len(block) <= self.limits.per_demo:
                return block, self._demo(self.template.separator, text, demo.words)
            limit -= 1
        raise PromptError(
            f"the label line of {demo.words!r} alone exceeds the limit of {self.limits.per_demo} tokens per "
            "demonstration",
            hint="raise the limit per demonstration, or use shorter label words",
        )

    def _demo(self, before: str, text: Text, words: str) -> Segment:
        input_line = self.template.input_line(text)
        if not words:
            return self._line(before, input_line)
        label_line = self.template.label_line(words)
        lines = (input_line, label_line) if self.inference == "direct" else (label_line, input_line)
        return self._line(before, lines[0]) + self._line(self.template.joint, lines[1])


def _check_distinct(branches: Sequence[Branch], words: Sequence[str], inference: Inference) -> None:
    """Check that no two labels have the same tokens: their scores would always be equal."""
    seen: dict[tuple[int, ...], str] = {}
    for branch, word in zip(branches, words, strict=True):
        line = (branch.scored if inference == "direct" else branch.given).tokens
        if line in seen:
            raise LabelError(
                f"the labels {seen[line]!r} and {word!r} are the same tokens to the model",
                hint="give one of them other words (words = … in labels.toml)",
            )
        seen[line] = word


def _drop_farthest(
    blocks: Sequence[tuple[Segment, Segment]], room: int, order: Sequence[int], keep: int | None
) -> list[int]:
    """Return, in prompt order, as many of the nearest demonstrations (the last numbers) as fit into ``room`` tokens."""
    for start in range(len(blocks) + 1):
        rest = [number for number in order if number >= start or number == keep]
        if sum(len(blocks[number][min(position, 1)]) for position, number in enumerate(rest)) <= room:
            return rest
    return []


def demonstration_order(order: Order, count: int, seed: int, item: str) -> list[int]:
    """Return the numbers of demonstrations (0 is the farthest) in prompt order; a shuffle depends on seed and item.

    >>> demonstration_order("nearest-last", 3, 0, "a text"), demonstration_order("nearest-first", 3, 0, "a text")
    ([0, 1, 2], [2, 1, 0])
    """
    if order == "shuffled":
        return [int(number) for number in rng(seed, item, "order").permutation(count)]
    return list(range(count)) if order == "nearest-last" else list(range(count))[::-1]
