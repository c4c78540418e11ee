"""The transformers backend: any causal language model; the demonstrations are computed once for all labels."""

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
from zicl.lm.batching import AdaptiveBatcher, BatchLimits, is_out_of_memory, too_large_error
from zicl.lm.forward import Forward, PrefixState
from zicl.lm.packing import pack
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.builder import Branch, BranchScores, Prompt
from zicl.prompt.tokens import Segment

_LOG = logging.getLogger("zicl")
# A prefix is computed separately and reused from this number of prompts on.
_SHARED_FROM = 2
# Tokens of the prompts that are packed after a shared prefix.
_PACK_TOKENS = 768
# Padded tokens of a batch: on a CPU, a single long prompt keeps all cores busy, and padding only costs time.
_BATCH_TOKENS_CPU, _BATCH_TOKENS_ACCELERATOR = 1024, 16384


class HFLanguageModel:
    """A transformers model that scores prompt trees.

    ``batch_size`` is the largest number of prompts in a forward pass. It changes no score by more than float32
    rounding, because every prompt has a separate mask. The same holds when memory runs out and batches become smaller.
    ``supports_trees`` says whether the model scores packed trees correctly.
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
        self._batcher = AdaptiveBatcher(name)
        self._last_prefix: tuple[tuple[int, ...], PrefixState] | None = None
        self.context: int | None = getattr(self.forward.config, "max_position_embeddings", None)
        # With int8 weights, the numbers of a token depend on what it is batched with: each label is computed alone.
        self.supports_trees = not getattr(model, "is_loaded_in_8bit", False) and self._check_trees()

    def __deepcopy__(self, memo: dict[int, object]) -> HFLanguageModel:
        """Return the same object: scikit-learn's ``clone`` must not copy the weights."""
        return self

    def score(self, prompts: Sequence[Prompt], progress: Progress | None = None) -> list[BranchScores]:
        """Return the log-likelihood of each scored token, in the order of the prompts; the longest are run first."""
        results: list[BranchScores | None] = [None] * len(prompts)
        with torch.inference_mode():
            for indices, scores in self._compute(prompts):
                for index, score in zip(indices, scores, strict=True):
                    results[index] = score
                if progress:
                    progress(len(indices))
        return [self._check(result) for result in results]

    def _check(self, score: BranchScores | None) -> BranchScores:
        """Check that there is a finite score for every token."""
        if score is None or not all(np.isfinite(row).all() for row in score):
            raise ModelError(
                f"{self.name} returned a score that is not a number",
                hint="use float32 or bfloat16: float16 overflows in some models",
            )
        return score

    def _compute(self, prompts: Sequence[Prompt]) -> Iterator[tuple[list[int], list[BranchScores]]]:
        if not self.supports_trees:
            for index, prompt in enumerate(prompts):
                tokens = max(len(prompt.tokens(branch)) for branch in range(len(prompt.branches)))
                yield [index], [self._batcher.one(partial(self.forward.plain, prompt), tokens)]
            return
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, prompt in enumerate(prompts):
            groups[prompt.prefix.tokens].append(index)
        alone = [indices[0] for indices in groups.values() if len(indices) < _SHARED_FROM]
        for prefix, indices in groups.items():
            if len(indices) >= _SHARED_FROM:
                yield from self._compute_shared(prefix, indices, prompts)
        yield from self._compute_alone(alone, prompts)

    def _compute_shared(
        self, prefix: tuple[int, ...], indices: list[int], prompts: Sequence[Prompt]
    ) -> Iterator[tuple[list[int], list[BranchScores]]]:
        """Compute the prefix once, then what follows it, with several prompts packed into one sequence."""
        free = self._clear_layer_cache
        state = self._batcher.one(partial(self._prefix_state, prefix), len(prefix), free) if prefix else None

        def compute(batch: list[int]) -> list[BranchScores]:
            packed = pack([prompts[indices[n]] for n in batch], prefix_computed=True)
            return self.forward.packed([packed], state)[0]

        sizes = [len(pack([prompts[i]], prefix_computed=bool(prefix))) for i in indices]
        limits = BatchLimits(self.batch_size, _PACK_TOKENS)
        for batch, scores in self._batcher.batches(sizes, compute, limits, free):
            yield [indices[n] for n in batch], scores

    def _prefix_state(self, prefix: tuple[int, ...]) -> PrefixState:
        """Return the computed prefix; the last one is cached, because the next call often shares it."""
        if self._last_prefix is None or self._last_prefix[0] != prefix:
            self._last_prefix = None
            self._last_prefix = prefix, self.forward.prefix(prefix)
        return self._last_prefix[1]

    def forget_prefix(self) -> None:
        """Drop the cached prefix: the model computes, or is about to compute, something else."""
        self._last_prefix = None

    def _compute_alone(
        self, indices: list[int], prompts: Sequence[Prompt]
    ) -> Iterator[tuple[list[int], list[BranchScores]]]:
        """Compute prompts that share no prefix, one per row, with rows of similar length together."""
        trees = [pack([prompts[i]]) for i in indices]

        def compute(batch: list[int]) -> list[BranchScores]:
            return [score[0] for score in self.forward.packed([trees[n] for n in batch])]

        limits = BatchLimits(self.batch_size, self._batch_tokens, padded=True)
        for batch, scores in self._batcher.batches([len(t) for t in trees], compute, limits, self._free_caches):
            yield [indices[n] for n in batch], scores

    def _free_caches(self) -> bool:
        """Drop the cached prefix and the cached lower layers; return whether there was anything to drop."""
        had_prefix = self._last_prefix is not None
        self.forget_prefix()
        return self._clear_layer_cache() or had_prefix

    def _clear_layer_cache(self) -> bool:
        return self.forward.layer_cache is not None and self.forward.layer_cache.clear()

    def _check_trees(self) -> bool:
        """Return whether packed trees get the scores of plain forward passes; checked once, when a model is loaded.

        Models that ignore masks or position ids (state-space models, ALiBi) fail; they are then scored by plain forward
        passes, which is slower and correct.
        """
        prompt = self._trial_prompt()
        with torch.inference_mode():
            try:
                plain = self.forward.plain(prompt)
            except (RuntimeError, MemoryError) as error:
                if is_out_of_memory(error):
                    raise too_large_error(self.name, error) from error
                raise
            try:
                alone = self.forward.packed([pack([prompt])])[0][0]
                rest = pack([prompt], prefix_computed=True)
                shared = self.forward.packed([rest], self.forward.prefix(prompt.prefix.tokens))[0][0]
            except (TypeError, ValueError, RuntimeError, KeyError, AttributeError) as error:
                if is_out_of_memory(error):
                    raise too_large_error(self.name, error) from error
                _LOG.warning(
                    "%s cannot score packed trees (%s): using plain forward passes, which are slower", self.name, error
                )
                return False
        tolerance = 1e-3 if self.forward.dtype == torch.float32 else 0.25
        worst = max(float(np.abs(a - b).max()) for tree in (alone, shared) for a, b in zip(plain, tree, strict=True))
        if not worst < tolerance:
            _LOG.warning(
                "%s scores packed trees off by %.2g: using plain forward passes, which are slower", self.name, worst
            )
        return worst < tolerance

    def _trial_prompt(self) -> Prompt:
        """Return a prompt of arbitrary tokens, longer than the local attention window of models such as GPT-Neo."""
        config = self.forward.config
        # Long enough for the tree attention to compute run by run, if the context of the model allows it.
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
