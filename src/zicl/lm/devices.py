"""Where a model's weights lie and in which numbers: what a device and a dtype ask of transformers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from zicl.exceptions import ConfigError, ModelError, first_line

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16", "int8")
# How accelerate spreads a model by itself.
MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
_MAP = "map:"
_DISK = "disk"
_FORM = (
    f"auto, cpu, cuda, cuda:1 or mps; or a map: {', '.join(_MAP + name for name in MAPS)}, "
    """map:{"model.layers.0": "cuda:0", "": "cpu"}"""
)


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
        read_map(self.device)

    @property
    def device_map(self) -> str | dict[str, str | int] | None:
        """What says which part lies where; int8 weights cannot be moved, so they are placed as they are read."""
        if self.dtype == "int8" and not self.device.startswith(_MAP):
            return {"": pick_device(self.device)}
        return read_map(self.device)

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


def read_map(device: str) -> str | dict[str, str | int] | None:
    """The map that a device's name holds, if it holds one.

    >>> read_map("map:auto"), read_map("cuda:1")
    ('auto', None)
    """
    if not device.startswith(_MAP):
        return None
    text = device.removeprefix(_MAP)
    if text in MAPS:
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found or not all(type(place) in (str, int) for place in found.values()):
        raise ConfigError(f"{device!r} is no map of a model's parts to devices", hint=f"expected {_FORM}")
    return found


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
            hint=f"this machine has: {', '.join(_devices())}; expected {_FORM}",
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
