"""Weights in large memory pages: matrix products on a CPU spend less time looking addresses up."""

from __future__ import annotations

import mmap
from typing import Any

import torch

# Large pages cannot be given back to the disk: bigger models stay as they were loaded.
_MOST_BYTES = 4 << 30
_ALIGNED = 64


def use_large_pages(model: Any) -> bool:
    """Move a model's weights into one block of large pages, where the system has them; whether that was done."""
    weights = list({id(p): p for p in model.parameters()}.values())
    sizes = [-(-p.numel() * p.element_size() // _ALIGNED) * _ALIGNED for p in weights]
    on_cpu = all(p.device.type == "cpu" for p in weights)
    if not hasattr(mmap, "MADV_HUGEPAGE") or not on_cpu or not 0 < sum(sizes) <= _MOST_BYTES:
        return False
    try:
        block = mmap.mmap(-1, sum(sizes))
        block.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a system without them, or without room
        return False
    memory, start = torch.frombuffer(block, dtype=torch.uint8), 0
    for weight, size in zip(weights, sizes, strict=True):
        place = memory[start : start + weight.numel() * weight.element_size()].view(weight.dtype).view(weight.shape)
        weight.data = place.copy_(weight.data)
        start += size
    return True
