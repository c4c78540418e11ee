"""Attention for packed trees: the prefix is a plain chain, and a causal kernel does it in half the work.

A packed sequence is mostly prefix. Under one explicit mask the kernel computes all pairs of it, also those
the mask forbids; here the chain goes through the causal kernel, and only the branches through the mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

NAME = "zicl_tree"
# How many tokens at the beginning of the sequence form a chain; 0 leaves everything to the mask.
_CHAIN: ContextVar[int] = ContextVar("chain", default=0)
# Below this length two calls cost more than they save.
_SHORTEST = 64


@contextmanager
def chain(length: int) -> Iterator[None]:
    """Within the block, the first ``length`` tokens of the sequence are known to be a chain."""
    token = _CHAIN.set(length if length >= _SHORTEST else 0)
    try:
        yield
    finally:
        _CHAIN.reset(token)


def use(model: Any) -> None:
    """Let a model attend this way, if it attends through PyTorch's fused attention now."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    if getattr(model.config.get_text_config(), "_attn_implementation", None) != "sdpa":
        return
    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward as sdpa

    length, window = _CHAIN.get(), options.get("sliding_window")
    alone = query.shape[0] == 1 and query.shape[2] == key.shape[2]
    if not length or not alone or attention_mask is None or (window and length > window):
        found: tuple[torch.Tensor, None] = sdpa(module, query, key, value, attention_mask, **options)
        return found
    front = [tensor[:, :, :length] for tensor in (query, key, value)]
    output, _ = sdpa(module, *front, None, **{**options, "is_causal": True})
    if query.shape[2] > length:
        rest, _ = sdpa(module, query[:, :, length:], key, value, attention_mask[:, :, length:], **options)
        output = torch.cat([output, rest], dim=1)
    return output, None
