"""The weights of a model: check that none is missing, hash them, and move them into huge memory pages."""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from typing import Any

import torch

from zicl._util.files import file_hash
from zicl.exceptions import ModelError

# Files up to the first size are hashed completely, larger ones by their size and some pieces spread over them.
_FULL_HASH, _PIECE, _PIECES = 64 << 20, 1 << 18, 64
# Huge pages cannot be swapped out, so larger models stay as they were loaded.
_MAX_HUGE_BYTES = 4 << 30
_ALIGNED = 64


def check_all_weights(spec: str, model: Any, info: dict[str, Any]) -> Any:
    """Return a loaded model if no weight is missing: transformers fills missing ones with random numbers."""
    if missing := sorted(info["missing_keys"]):
        raise ModelError(
            f"{spec} has no weights for {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''}",
            hint="use the causal language model: this one was saved for another purpose, such as classification",
        )
    return model


def hash_weights(folder: Path) -> str:
    """Return a hash of the weights and the configuration in a folder."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin"), folder / "config.json"]):
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}:".encode())
        if size <= _FULL_HASH:
            digest.update(file_hash(path).encode())
            continue
        with path.open("rb") as stream:
            for piece in range(_PIECES):
                stream.seek(size * piece // _PIECES)
                digest.update(stream.read(_PIECE))
    return digest.hexdigest()


def use_huge_pages(model: Any) -> bool:
    """Move the weights into one block of huge pages, if the system has them; return whether this was done.

    Matrix products on a CPU then spend less time on address translation.
    """
    weights = list({id(p): p for p in model.parameters()}.values())
    sizes = [-(-p.numel() * p.element_size() // _ALIGNED) * _ALIGNED for p in weights]
    on_cpu = all(p.device.type == "cpu" for p in weights)
    if not hasattr(mmap, "MADV_HUGEPAGE") or not on_cpu or not 0 < sum(sizes) <= _MAX_HUGE_BYTES:
        return False
    try:
        block = mmap.mmap(-1, sum(sizes))
        block.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a system without huge pages, or without enough memory
        return False
    memory, start = torch.frombuffer(block, dtype=torch.uint8), 0
    for weight, size in zip(weights, sizes, strict=True):
        place = memory[start : start + weight.numel() * weight.element_size()].view(weight.dtype).view(weight.shape)
        weight.data = place.copy_(weight.data)
        start += size
    return True
