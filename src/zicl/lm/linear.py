"""Linear layers on a CPU by oneDNN, with weights stored in the order in which its kernels read them.

torch multiplies float32 matrices with MKL, which on AMD processors leaves AVX-512 unused: there this is 1.8 times as
fast for whole prompts. Results differ from torch's by float32 rounding.
"""

from __future__ import annotations

import platform
from typing import Any

import torch

# Architectures whose linear layers are only called. Others read their weights (Mamba), or change them (RWKV).
FAMILIES = frozenset(
    {
        "codegen", "cohere", "gemma", "gemma2", "gemma3_text", "gpt_neo", "gpt_neox", "gptj", "granite", "llama",
        "mistral", "olmo", "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "smollm3", "stablelm", "starcoder2",
    }
)  # fmt: skip
# The number of rows that the weights are laid out for; any other number works as well.
_ROWS = 512
# Without types.
_ONEDNN: Any = torch.backends.mkldnn


def supports_onednn(weight: torch.Tensor) -> bool:
    """Return whether oneDNN multiplies with these weights here: float32 on an x86 processor."""
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and platform.machine() in ("x86_64", "AMD64")
        and bool(_ONEDNN.is_available())
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def multiply(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``states @ weight.T + bias`` by oneDNN; the weights may be packed."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
    return product


class PackedLinear(torch.nn.Module):
    """A linear layer for inference that holds its weights packed, and only so.

    >>> layer = torch.nn.Linear(4, 2)
    >>> PackedLinear(layer)
    PackedLinear(in_features=4, out_features=2)
    """

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.bias = layer.bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), _ROWS)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        return multiply(states, self._packed, self.bias)

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        return f"in_features={self.in_features}, out_features={self.out_features}"


def pack_linear_layers(model: Any) -> int:
    """Replace the linear layers of a model by packed ones where that is faster, and return their number.

    The vocabulary projection stays: its weights are often those of the embeddings, and would be held twice.
    """
    if model.config.get_text_config().model_type not in FAMILIES:
        return 0
    head, count = model.get_output_embeddings(), 0
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            # Subclasses compute something else, and hooks belong to the layer.
            plain = type(layer) is torch.nn.Linear and not hasattr(layer, "_hf_hook")
            if plain and layer is not head and supports_onednn(layer.weight):
                setattr(module, name, PackedLinear(layer))
                count += 1
    return count
