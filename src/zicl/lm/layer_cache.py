"""Cache hidden states below the first ablated layer; ablations of the same batch share them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from zicl.lm.packing import PackedPrompts

# Enough for the hidden states of hundreds of prompts of a small model, or some dozen of one with 6 billion parameters.
_MAX_BYTES = 2**30
# The tokens and parents of each packed sequence of a batch.
Key = tuple[tuple[bytes, bytes], ...]


class LowerLayerCache:
    """The output of a model's lowest layers for recent batches; the least recently used is dropped first.

    Only the same batch is a hit, not the same prompts in another batch: the last digits of the numbers could differ.
    """

    def __init__(self, layers: Sequence[torch.nn.Module], max_bytes: int = _MAX_BYTES) -> None:
        self.layers, self._max_bytes = tuple(layers), max_bytes
        self._outputs: OrderedDict[Key, Any] = OrderedDict()

    @contextmanager
    def reuse(self, batch: Sequence[PackedPrompts]) -> Iterator[None]:
        """Within the block, a forward pass of ``batch`` skips these layers if their output is cached, or caches it."""
        key = tuple((packed.tokens.tobytes(), packed.parents.tobytes()) for packed in batch)
        if key in self._outputs:
            self._outputs.move_to_end(key)
            with _skipped(self.layers, self._outputs[key]):
                yield
            return
        hook = self.layers[-1].register_forward_hook(lambda _, __, output: self._store(key, output))
        try:
            yield
        finally:
            hook.remove()

    def clear(self) -> bool:
        """Release the memory; return whether anything was cached."""
        had_outputs = bool(self._outputs)
        self._outputs.clear()
        return had_outputs

    def _store(self, key: Key, output: Any) -> None:
        # Some architectures return a tuple; GPT-J's also holds attention weights, which no later layer reads.
        self._outputs[key] = (output[0], *(None for _ in output[1:])) if isinstance(output, tuple) else output
        while sum(map(_nbytes, self._outputs.values())) > self._max_bytes:
            self._outputs.popitem(last=False)


def _nbytes(output: Any) -> int:
    tensor: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return tensor.nbytes


@contextmanager
def _skipped(layers: Sequence[torch.nn.Module], output: Any) -> Iterator[None]:
    """Within the block, each of these layers returns ``output``, the cached output of the last one."""
    # A layer of a model that is spread over devices already has a forward in its instance dictionary.
    originals = [vars(layer).get("forward") for layer in layers]
    for layer in layers:
        vars(layer)["forward"] = lambda *_, **__: output
    try:
        yield
    finally:
        for layer, forward in zip(layers, originals, strict=True):
            if forward is None:
                del vars(layer)["forward"]
            else:
                vars(layer)["forward"] = forward
