"""The device and dtype of a model: check them, and turn them into options of transformers."""

from __future__ import annotations

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
    """The device and dtype of the weights.

    ``device`` is one device, or ``map:`` and how to spread the model over several; int8 is that of bitsandbytes.

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
        """The device of each module, if not all on one; int8 weights cannot be moved, so they are placed when read."""
        if self.dtype == "int8" and not self.device.startswith(MAP_PREFIX):
            return {"": pick_device(self.device)}
        return parse_device_map(self.device)

    def options(self) -> dict[str, Any]:
        """Return the options for ``from_pretrained``; raise if this machine cannot fulfil them."""
        if self.dtype == "int8":
            _check_int8()
        device_map = self.device_map
        if device_map is None:
            check_device(pick_device(self.device))
        elif isinstance(device_map, dict):
            for device in device_map.values():
                if device != _DISK:
                    check_device(device)
        # transformers would otherwise use the dtype of the checkpoint. With int8, the remaining weights are float16.
        options: dict[str, Any] = {"dtype": getattr(torch, "float16" if self.dtype == "int8" else self.dtype)}
        if device_map is not None:
            options["device_map"] = device_map
        if self.dtype == "int8":
            from transformers import BitsAndBytesConfig

            options["quantization_config"] = BitsAndBytesConfig(load_in_8bit=True)
        return options


def pick_device(device: str) -> str:
    """Return the device; ``auto`` is the accelerator if there is one, else the CPU."""
    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def check_device(device: str | int) -> None:
    """Check that a tensor can be created on this device."""
    reason = ""
    try:
        if torch.empty(1, device=device).device.type == "meta":
            reason = "it stores no numbers"
    # In this order: an unknown name or number, a build without CUDA, a missing backend.
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = first_line(error)
    if reason:
        raise ConfigError(
            f"the device {device!r} cannot be used here: {reason}",
            hint=f"this machine has: {', '.join(_devices())}; expected {DEVICE_FORM}",
        )


def input_device(model: Any) -> torch.device:
    """Return the device of a model's first step: tokens and masks are created there."""
    embedding = model.get_input_embeddings()
    # Weights that accelerate keeps in memory or on disk have no device before they are used.
    device = getattr(getattr(embedding, "_hf_hook", None), "execution_device", None)
    return torch.device(device) if device is not None else next(model.parameters()).device


def _devices() -> list[str]:
    cuda = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return [*cuda, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def _check_int8() -> None:
    if not torch.cuda.is_available():
        raise ModelError(
            "int8 weights need a CUDA device, and there is none", hint="use dtype bfloat16, which runs everywhere"
        )
    if find_spec("bitsandbytes") is None:
        raise ModelError("int8 weights need bitsandbytes, which is not installed", hint='pip install "zicl[int8]"')
