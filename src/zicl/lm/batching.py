"""Batches sized to the memory at hand: one that does not fit is halved, and later ones are no larger."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from zicl.exceptions import ModelError, first_line

_LOG = logging.getLogger("zicl")
# What CUDA, cuBLAS, MPS and PyTorch's CPU allocator say; only the first two have an exception of their own.
_SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")
T = TypeVar("T")


@dataclass(frozen=True)
class BatchLimits:
    """How much is computed at once where memory does not matter; ``padded`` rows are as long as the longest."""

    prompts: int
    tokens: int
    padded: bool = False

    def cost(self, sizes: Sequence[int]) -> int:
        """The tokens that a batch computes."""
        return len(sizes) * max(sizes, default=0) if self.padded else sum(sizes)

    def batch(self, left: Sequence[int], room: int) -> int:
        """How many of the sizes that are left, from the first on, are one batch: at least one."""
        most, count = min(self.tokens, room), 1
        while count < min(len(left), self.prompts) and self.cost(left[: count + 1]) <= most:
            count += 1
        return count


class AdaptiveBatcher:
    """The memory for one model's batches, learnt by trying; ``tokens`` is how many may be computed at once."""

    def __init__(self, name: str) -> None:
        self.name, self.tokens = name, sys.maxsize

    def batches(
        self,
        sizes: Sequence[int],
        compute: Callable[[list[int]], T],
        limits: BatchLimits,
        spare: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[list[int], T]]:
        """Compute items in batches, longest first: the numbers of each batch with what was computed.

        ``spare`` gives memory back that is held only to save time, and says whether there was any.
        """
        order = sorted(range(len(sizes)), key=lambda number: -sizes[number])
        start, spared = 0, False
        while start < len(order):
            count = limits.batch([sizes[n] for n in order[start : start + limits.prompts]], self.tokens)
            batch = order[start : start + count]
            tokens = limits.cost([sizes[n] for n in batch])
            found, failure = _tried(compute, batch)
            # Here, and not where the error is caught: until then its traceback holds what was computed.
            if found is None:
                # Once a batch: every try may keep something for later again.
                spared = not spared and spare()
                if not spared:
                    self._halve(count, tokens, failure)
                _give_back()
                continue
            yield batch, found[0]
            start, spared = start + count, False

    def one(self, compute: Callable[[], T], tokens: int, spare: Callable[[], bool] = lambda: False) -> T:
        """Compute what cannot be halved."""
        found, failure = _tried(lambda _: compute(), [0])
        if found is None and spare():
            _give_back()
            found, failure = _tried(lambda _: compute(), [0])
        if found is None:
            raise self._too_long(tokens, failure)
        return found[0]

    def _halve(self, prompts: int, tokens: int, failure: str) -> None:
        if prompts == 1:
            raise self._too_long(tokens, failure)
        told, self.tokens = self.tokens < sys.maxsize, max(1, tokens // 2)
        if not told:
            _LOG.warning(
                "%s: memory ran out with %d tokens at once; going on with at most %d, or fewer if need be",
                self.name,
                tokens,
                self.tokens,
            )

    def _too_long(self, tokens: int, failure: str) -> ModelError:
        return ModelError(
            f"{self.name}: {tokens} tokens of a single prompt do not fit into the memory: {failure}",
            hint="fewer demonstrations (k, prompt.tokens_all_demos), shorter texts (prompt.tokens_input), smaller "
            "numbers (dtype bfloat16 or int8), or a model spread over devices (device map:auto)",
        )


def too_large_error(name: str, error: BaseException) -> ModelError:
    """The error for weights that do not fit."""
    return ModelError(
        f"the weights of {name} do not fit into the memory: {first_line(error)}",
        hint="smaller numbers (dtype bfloat16 or int8), or spread over devices, memory and disk (device map:auto)",
    )


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out.

    >>> out_of_memory(RuntimeError("MPS backend out of memory")), out_of_memory(RuntimeError("shapes differ"))
    (True, False)
    """
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)


def _tried(compute: Callable[[list[int]], T], batch: list[int]) -> tuple[tuple[T] | None, str]:
    try:
        return (compute(batch),), ""
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        return None, first_line(error)


def _give_back() -> None:
    """Let other batches have what the failed one took."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()
