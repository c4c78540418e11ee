"""What 8-bit activations alone do to a score, without a server.

Where weights are quantised, llama.cpp rounds the input of every matrix product to 8 bits, in blocks of 32 numbers that
share a scale. Done to the transformers backend, the same rounding says how far its answers may be from a server's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_BLOCK, _LARGEST = 32, 127


@contextmanager
def eight_bit_activations(lm: Any) -> Iterator[None]:
    """Round the inputs of all linear layers while the block lasts."""
    layers = [module for module in lm.forward.model.modules() if isinstance(module, torch.nn.Linear)]
    hooks = [layer.register_forward_pre_hook(_round_input) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _round_input(_: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (rounded(inputs[0]), *inputs[1:])


def rounded(numbers: torch.Tensor) -> torch.Tensor:
    """Each block of numbers as whole multiples of its scale, which is kept in half precision."""
    blocks = numbers.unflatten(-1, (-1, _BLOCK))
    scale = blocks.abs().amax(-1, keepdim=True) / _LARGEST
    counts = torch.round(blocks / scale.clamp_min(torch.finfo(torch.float32).tiny))
    return (counts * scale.half().float()).flatten(-2)
