"""The transformers backend: any causal language model, the demonstrations run through it once for all labels."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from zicl._util.progress import Progress
from zicl.exceptions import ModelError
from zicl.lm.batching import AdaptiveBatcher, BatchLimits, out_of_memory, too_large_error
from zicl.lm.forward import Forward, Past
from zicl.lm.packing import pack
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.builder import Branch, BranchScores, Prompt
from zicl.prompt.tokens import Segment

_LOG = logging.getLogger("zicl")
# A shared prefix is kept and reused from this many prompts on.
_SHARED_FROM = 2
# Tokens of packed prompts behind a shared prefix.
_PACK_TOKENS = 768
# Padded tokens of a batch: on a CPU a single long prompt keeps all cores busy, and padding only costs.
_BATCH_TOKENS_CPU, _BATCH_TOKENS_ACCELERATOR = 1024, 16384


class HFLanguageModel:
    """A transformers model that scores prompt trees.

    ``batch_size`` bounds how many prompts share a forward pass. It never changes a score by more than
    float32 rounding, because every prompt is scored under its own mask. Nor does memory that runs out: batches then
    become smaller.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        identity: str,
        revision: str = "",
        adds_bos: bool | None = None,
        batch_size: int = 8,
    ) -> None:
        self.name = name
        self.identity = identity
        self.revision = revision
        self.tokenizer = PlainTokenizer(tokenizer, name)
        self.adds_bos = self.tokenizer.adds_bos() if adds_bos is None else adds_bos
        self.batch_size = batch_size
        self.forward = Forward(model.eval())
        on_cpu = self.forward.device.type == "cpu"
        self._batch_tokens = _BATCH_TOKENS_CPU if on_cpu else _BATCH_TOKENS_ACCELERATOR
        self._room = AdaptiveBatcher(name)
        self._last_prefix: tuple[tuple[int, ...], Past] | None = None
        self.context: int | None = getattr(self.forward.config, "max_position_embeddings", None)
        # With int8 weights a token's numbers depend on the tokens it is computed with: each label is computed alone.
        self.reads_trees = not getattr(model, "is_loaded_in_8bit", False) and self._reads_trees()

    def __deepcopy__(self, memo: dict[int, object]) -> HFLanguageModel:
        """A handle: scikit-learn's ``clone`` must not copy the weights."""
        return self

    def score(self, prompts: Sequence[Prompt], progress: Progress | None = None) -> list[BranchScores]:
        """The log-likelihood of each scored token, in the order asked; longest prompts are run first."""
        results: list[BranchScores | None] = [None] * len(prompts)
        with torch.inference_mode():
            for indices, scores in self._run(prompts):
                for index, score in zip(indices, scores, strict=True):
                    results[index] = score
                if progress:
                    progress(len(indices))
        return [self._checked(result) for result in results]

    def _checked(self, score: BranchScores | None) -> BranchScores:
        """A score for every token, each a number; never a silent gap."""
        if score is None or not all(np.isfinite(row).all() for row in score):
            raise ModelError(
                f"{self.name} gave a score that is not a number",
                hint="half precision overflows in some models: use float32 or bfloat16",
            )
        return score

    def _run(self, prompts: Sequence[Prompt]) -> Iterator[tuple[list[int], list[BranchScores]]]:
        if not self.reads_trees:
            for index, prompt in enumerate(prompts):
                tokens = max(len(prompt.tokens(branch)) for branch in range(len(prompt.branches)))
                yield [index], [self._room.one(partial(self.forward.plain, prompt), tokens)]
            return
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, prompt in enumerate(prompts):
            groups[prompt.prefix.tokens].append(index)
        alone = [indices[0] for indices in groups.values() if len(indices) < _SHARED_FROM]
        for prefix, indices in groups.items():
            if len(indices) >= _SHARED_FROM:
                yield from self._run_shared(prefix, indices, prompts)
        yield from self._run_alone(alone, prompts)

    def _run_shared(
        self, prefix: tuple[int, ...], indices: list[int], prompts: Sequence[Prompt]
    ) -> Iterator[tuple[list[int], list[BranchScores]]]:
        """The prefix once, then the prompts' own tokens, several prompts packed into one sequence."""
        forget = self._forget_layers
        past = self._room.one(lambda: self._past(prefix), len(prefix), forget) if prefix else None

        def compute(batch: list[int]) -> list[BranchScores]:
            packed = pack([prompts[indices[n]] for n in batch], prefix_computed=True)
            return self.forward.packed([packed], past)[0]

        sizes = [len(pack([prompts[i]], prefix_computed=bool(prefix))) for i in indices]
        for batch, scores in self._room.batches(
            sizes, compute, BatchLimits(self.batch_size, _PACK_TOKENS), spare=forget
        ):
            yield [indices[n] for n in batch], scores

    def _past(self, prefix: tuple[int, ...]) -> Past:
        """The keys and values of a prefix; the last one is kept, since the next call often shares it."""
        if self._last_prefix is None or self._last_prefix[0] != prefix:
            self._last_prefix = None
            self._last_prefix = prefix, self.forward.prefix(prefix)
        return self._last_prefix[1]

    def forget_prefix(self) -> None:
        """Drop the prefix that is kept: what the model computes has changed, or is about to."""
        self._last_prefix = None

    def _run_alone(
        self, indices: list[int], prompts: Sequence[Prompt]
    ) -> Iterator[tuple[list[int], list[BranchScores]]]:
        """Prompts with a prefix of their own, a row each, rows of like length together."""
        trees = [pack([prompts[i]]) for i in indices]

        def compute(batch: list[int]) -> list[BranchScores]:
            return [score[0] for score in self.forward.packed([trees[n] for n in batch])]

        limits = BatchLimits(self.batch_size, self._batch_tokens, padded=True)
        for batch, scores in self._room.batches([len(t) for t in trees], compute, limits, spare=self._spare):
            yield [indices[n] for n in batch], scores

    def _spare(self) -> bool:
        """Give back what is kept for later, the prefix and the layers' states; whether there was any."""
        kept = self._last_prefix is not None
        self.forget_prefix()
        return self._forget_layers() or kept

    def _forget_layers(self) -> bool:
        return self.forward.below is not None and self.forward.below.forget()

    def _reads_trees(self) -> bool:
        """Whether this model gives a packed tree the scores of plain forward passes: tried once, at load.

        Models that ignore masks or position ids (state-space models, ALiBi) do not; they are scored the
        plain way instead, which is slower and right.
        """
        prompt = self._trial()
        with torch.inference_mode():
            try:
                plain = self.forward.plain(prompt)
            except (RuntimeError, MemoryError) as error:
                if out_of_memory(error):
                    raise too_large_error(self.name, error) from error
                raise
            try:
                alone = self.forward.packed([pack([prompt])])[0][0]
                behind = pack([prompt], prefix_computed=True)
                shared = self.forward.packed([behind], self.forward.prefix(prompt.prefix.tokens))[0][0]
            except (TypeError, ValueError, RuntimeError, KeyError, AttributeError) as error:
                if out_of_memory(error):
                    raise too_large_error(self.name, error) from error
                _LOG.warning("%s cannot score trees (%s): scoring it the plain, slower way", self.name, error)
                return False
        tolerance = 1e-3 if self.forward.dtype == torch.float32 else 0.25
        worst = max(float(np.abs(a - b).max()) for tree in (alone, shared) for a, b in zip(plain, tree, strict=True))
        if not worst < tolerance:
            _LOG.warning("%s scores trees off by %.2g: scoring it the plain, slower way", self.name, worst)
        return worst < tolerance

    def _trial(self) -> Prompt:
        """A prompt of arbitrary tokens; longer than the window where a model counts its window in its own way."""
        config = self.forward.config
        # Long enough for attention run by run, where the model's context allows; many short runs share its masks.
        tail = 60 if self.context is None or self.context >= 256 else 4
        length = (80 if tail > 4 else 12) + int(getattr(config, "window_size", None) or 0)
        if self.context is not None:
            length = min(length, self.context - tail - 4)
        draw = np.random.default_rng(7).integers(3, min(config.vocab_size, 1000), length + 2 * tail + 1).tolist()
        prefix, stem, (joint, *tails) = draw[: length - 4], draw[length - 4 : length], draw[length:]
        branches = tuple(
            Branch(Segment("", (joint, first)), Segment("", tuple(tails[first - 3 :: 2]))) for first in (3, 4)
        )
        return Prompt(Segment("", tuple(prefix)), Segment("", tuple(stem)), branches)
