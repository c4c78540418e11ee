"""Batches that adapt to the available memory: one that does not fit is halved, and later ones are no larger."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from zicl.exceptions import ModelError, first_line

_LOG = logging.getLogger("zicl")
# What accelerate does not know: cuBLAS without memory for its workspace, PyTorch's CPU allocator on Windows, and its
# known phrases where they do not end a sentence or are not the only argument of the error.
_OTHER_MESSAGES = ("CUBLAS_STATUS_ALLOC_FAILED", "not enough memory", "out of memory", "can't allocate memory")
T = TypeVar("T")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory ran out.

    >>> is_out_of_memory(RuntimeError("MPS backend out of memory")), is_out_of_memory(RuntimeError("shapes differ"))
    (True, False)
    """
    # accelerate knows runtime errors only; Python raises MemoryError.
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if not isinstance(error, RuntimeError):
        return False
    return should_reduce_batch_size(error) or any(message in str(error) for message in _OTHER_MESSAGES)


def too_large_error(name: str, error: BaseException) -> ModelError:
    """Return the error for weights that do not fit into memory."""
    return ModelError(
        f"the weights of {name} do not fit into memory: {first_line(error)}",
        hint="use smaller numbers (dtype bfloat16 or int8), or spread the model over devices, memory and disk "
        "(device map:auto)",
    )


@dataclass(frozen=True)
class BatchLimits:
    """The largest batch while memory suffices; with ``padded``, all rows are as long as the longest one."""

    prompts: int
    tokens: int
    padded: bool = False

    def cost(self, sizes: Sequence[int]) -> int:
        """Return the number of tokens that a batch computes.

        >>> BatchLimits(8, 100).cost([3, 5]), BatchLimits(8, 100, padded=True).cost([3, 5])
        (8, 10)
        """
        return len(sizes) * max(sizes, default=0) if self.padded else sum(sizes)

    def count(self, sizes: Sequence[int], max_tokens: int) -> int:
        """Return how many items, from the first on, make up the next batch: at least one."""
        limit, count = min(self.tokens, max_tokens), 1
        while count < min(len(sizes), self.prompts) and self.cost(sizes[: count + 1]) <= limit:
            count += 1
        return count


def _nothing_to_free() -> bool:
    return False


class AdaptiveBatcher:
    """Run batches of one model and learn how many tokens fit into memory at once (``max_tokens``).

    The ``free`` of its methods releases memory that is held only to save time, and returns whether there was any.
    """

    def __init__(self, name: str) -> None:
        self.name, self.max_tokens = name, sys.maxsize

    def batches(
        self,
        sizes: Sequence[int],
        compute: Callable[[list[int]], T],
        limits: BatchLimits,
        free: Callable[[], bool] = _nothing_to_free,
    ) -> Iterator[tuple[list[int], T]]:
        """Compute items in batches, longest first; yield the indices of each batch with its result."""
        order = sorted(range(len(sizes)), key=lambda index: -sizes[index])
        start, freed = 0, False
        while start < len(order):
            count = limits.count([sizes[n] for n in order[start : start + limits.prompts]], self.max_tokens)
            batch = order[start : start + count]
            result, failure = _attempt(partial(compute, batch))
            if result is None:
                # Once per batch: every attempt may fill the caches again.
                freed = not freed and free()
                if not freed:
                    self._halve(count, limits.cost([sizes[n] for n in batch]), failure)
                # Here, and not where the error is caught: its traceback holds tensors until then.
                clear_device_cache(garbage_collection=True)
                continue
            yield batch, result[0]
            start, freed = start + count, False

    def one(self, compute: Callable[[], T], tokens: int, free: Callable[[], bool] = _nothing_to_free) -> T:
        """Compute one item, which cannot be halved."""
        result, failure = _attempt(compute)
        if result is None and free():
            clear_device_cache(garbage_collection=True)
            result, failure = _attempt(compute)
        if result is None:
            raise self._too_long(tokens, failure)
        return result[0]

    def _halve(self, prompts: int, tokens: int, failure: str) -> None:
        if prompts == 1:
            raise self._too_long(tokens, failure)
        if self.max_tokens == sys.maxsize:
            _LOG.warning(
                "%s: memory ran out with %d tokens in a batch; continuing with at most %d, or fewer if necessary",
                self.name,
                tokens,
                max(1, tokens // 2),
            )
        self.max_tokens = max(1, tokens // 2)

    def _too_long(self, tokens: int, failure: str) -> ModelError:
        return ModelError(
            f"{self.name}: {tokens} tokens of a single prompt do not fit into memory: {failure}",
            hint="use fewer demonstrations (k, prompt.tokens_all_demos), shorter texts (prompt.tokens_input), smaller "
            "numbers (dtype bfloat16 or int8), or spread the model over devices (device map:auto)",
        )


def _attempt(compute: Callable[[], T]) -> tuple[tuple[T] | None, str]:
    """Return the result in a tuple, or None and the message of the error if memory ran out."""
    try:
        return (compute(),), ""
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return None, first_line(error)
