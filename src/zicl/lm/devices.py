"""Where a model's weights lie and in which numbers: what a device and a dtype ask of transformers."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch

from zicl.config import DEVICE_FORM, MAP_PREFIX, parse_device_map
from zicl.exceptions import ConfigError, ModelError, first_line

DTYPES = ("float32", "bfloat16", "float16", "int8")
_DISK = "disk"


@dataclass(frozen=True)
class Placement:
    """``device`` is one device, or ``map:`` and how the model is spread over several; int8 means bitsandbytes'.

    >>> Placement('map:{"": "cpu"}', "bfloat16").device_map
    {'': 'cpu'}
    """

    device: str = "auto"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ConfigError(f"unknown dtype {self.dtype!r}", hint=f"expected one of: {', '.join(DTYPES)}")
        parse_device_map(self.device)

    @property
    def device_map(self) -> str | dict[str, str | int] | None:
        """What says which part lies where; int8 weights cannot be moved, so they are placed as they are read."""
        if self.dtype == "int8" and not self.device.startswith(MAP_PREFIX):
            return {"": pick_device(self.device)}
        return parse_device_map(self.device)

    def options(self) -> dict[str, Any]:
        """What ``from_pretrained`` is told; an error if this machine cannot do it."""
        import torch

        if self.dtype == "int8":
            _check_int8()
        where = self.device_map
        for device in where.values() if isinstance(where, dict) else [] if where else [pick_device(self.device)]:
            if device != _DISK:
                check_device(device)
        # Told, because transformers otherwise loads in the checkpoint's dtype. What stays beside int8 is float16.
        options: dict[str, Any] = {"dtype": getattr(torch, "float16" if self.dtype == "int8" else self.dtype)}
        if where is not None:
            options["device_map"] = where
        if self.dtype == "int8":
            from transformers import BitsAndBytesConfig

            options["quantization_config"] = BitsAndBytesConfig(load_in_8bit=True)
        return options


def pick_device(device: str) -> str:
    """``auto`` is the accelerator where there is one."""
    import torch

    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def check_device(device: str | int) -> None:
    """There is such a device, and numbers can be put on it."""
    import torch

    try:
        there = torch.empty(1, device=device).device.type != "meta"
        why = "it holds no numbers"
    # What torch raises for a device, by its kind: a name or number there is not, a build without CUDA, no such backend.
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        there, why = False, first_line(error)
    if not there:
        raise ConfigError(
            f"the device {device!r} cannot be used here: {why}",
            hint=f"this machine has: {', '.join(_devices())}; expected {DEVICE_FORM}",
        )


def entry(model: Any) -> torch.device:
    """Where a model computes its first step: tokens and masks are made there, and taken on from device to device."""
    import torch

    embedding = model.get_input_embeddings()
    # Weights that wait on disk or in memory are on no device until accelerate brings them to where they are used.
    used = getattr(getattr(embedding, "_hf_hook", None), "execution_device", None)
    return torch.device(used) if used is not None else next(model.parameters()).device


def _devices() -> list[str]:
    import torch

    cuda = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return [*cuda, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def _check_int8() -> None:
    import torch

    if not torch.cuda.is_available():
        raise ModelError("int8 weights need a CUDA device, and there is none", hint="dtype bfloat16 runs everywhere")
    if find_spec("bitsandbytes") is None:
        raise ModelError("int8 weights need bitsandbytes, which is not installed", hint='pip install "zicl[int8]"')


# -- Weights in large memory pages: matrix products on a CPU spend less time looking addresses up.


# Large pages cannot be given back to the disk: bigger models stay as they were loaded.
_MOST_BYTES = 4 << 30
_ALIGNED = 64


def use_huge_pages(model: Any) -> bool:
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
