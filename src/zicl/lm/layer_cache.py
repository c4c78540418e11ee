"""The layers below all silenced heads give the same whichever of these are silent: of a batch they are run once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from zicl.lm.packing import PackedPrompts

# Bytes of hidden states that are kept: those of hundreds of prompts of a small model, some dozen of one of 6 billion.
_MOST = 2**30


class LowerLayerCache:
    """What the lowest layers of a model made of the last batches.

    The same batch, and not only the same prompts: of another one the numbers could differ in their last digits.
    """

    def __init__(self, layers: Sequence[torch.nn.Module], most: int = _MOST) -> None:
        self.layers, self._most = tuple(layers), most
        self._made: OrderedDict[Key, Any] = OrderedDict()

    @contextmanager
    def once(self, batch: Sequence[PackedPrompts]) -> Iterator[None]:
        """Within the block, a forward pass of ``batch`` runs these layers only if they have not run it before."""
        key = _key(batch)
        if key in self._made:
            self._made.move_to_end(key)
            with _passing_state(self.layers, self._made[key]):
                yield
            return
        last = self.layers[-1].register_forward_hook(lambda _, __, output: self._keep(key, output))
        try:
            yield
        finally:
            last.remove()

    def forget(self) -> bool:
        """Give back the memory; whether there was any."""
        kept = bool(self._made)
        self._made.clear()
        return kept

    def _keep(self, key: Key, output: Any) -> None:
        # Some families give a tuple, and GPT-J in it the attention's weights, which nothing above reads.
        self._made[key] = (output[0], *(None for _ in output[1:])) if isinstance(output, tuple) else output
        while sum(map(_nbytes, self._made.values())) > self._most:
            self._made.popitem(last=False)


Key = tuple[tuple[bytes, bytes], ...]


def _key(batch: Sequence[PackedPrompts]) -> Key:
    return tuple((packed.tokens.tobytes(), packed.parents.tobytes()) for packed in batch)


def _nbytes(output: Any) -> int:
    """The bytes of what is kept of a layer's output."""
    tensor: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return tensor.nbytes


@contextmanager
def _passing_state(layers: Sequence[torch.nn.Module], output: Any) -> Iterator[None]:
    """Within the block these layers compute nothing: each gives what the last of them once gave."""
    # A layer of a model that is spread over devices has a forward of its own already.
    own = [vars(layer).get("forward") for layer in layers]
    for layer in layers:
        vars(layer)["forward"] = lambda *_, **__: output
    try:
        yield
    finally:
        for layer, forward in zip(layers, own, strict=True):
            if forward is None:
                del vars(layer)["forward"]
            else:
                vars(layer)["forward"] = forward
