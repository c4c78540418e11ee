"""Attention for packed trees: what the tree's shape says need not be computed is not.

A packed sequence is a chain (the prefix) and short runs that hang from it. Under one explicit mask a kernel
computes all pairs, also those the mask forbids. Here the chain goes block by block, each with the keys up to its
own end; everything behind it sees the whole chain without a mask, and each run sees only its own ancestors and
itself. The two halves of a softmax are joined by their normalisers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch

from zicl.lm.packing import PackedPrompts

NAME = "zicl_tree"
# Below these lengths more calls cost more than they save.
_SHORTEST_CHAIN, _SHORTEST_REST = 64, 48
# From so many runs on, one call for all of them under a mask is cheaper than one each: many labels, short branches.
_MOST_RUNS = 24
# Queries of the chain at once. The causal CPU kernel computes nearly all pairs of a chain of 512; blocks save a sixth.
_BLOCK = 64


# Queries behind the chain, the keys they see beside it, and their mask.
Run = tuple[slice, slice | torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class TreeShape:
    """What attention needs to know of the one packed sequence that is run.

    The first ``trunk`` tokens are a chain, in ``blocks`` of queries with their masks; all that follows sees the
    first ``seen`` keys (trunk and cached prefix), and of the others, run by run, only ``keys`` under ``mask``.
    ``depth`` is the longest path, ``device`` where the masks are.
    """

    trunk: int
    seen: int
    depth: int
    blocks: tuple[tuple[slice, torch.Tensor], ...]
    runs: tuple[Run, ...]
    device: torch.device


# What transformers asks about head sharing: keys and values that were repeated share nothing.
_SINGLE = torch.nn.Module()
# None leaves everything to the mask.
_SHAPE: ContextVar[TreeShape | None] = ContextVar("shape", default=None)


@contextmanager
def tree_shape(packed: PackedPrompts | None, device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Within the block, the sequence that is run has the shape of ``packed``."""
    token = _SHAPE.set(None if packed is None else _shape(packed, device, dtype))
    try:
        yield
    finally:
        _SHAPE.reset(token)


def _shape(packed: PackedPrompts, device: torch.device, dtype: torch.dtype) -> TreeShape | None:
    # A causal kernel aligns the first query with the first key: behind a cached prefix there is no trunk.
    trunk = 0 if packed.offset else packed.trunk
    seen = packed.offset + trunk
    if seen < _SHORTEST_CHAIN:
        return None
    spans = list(packed.runs(trunk))
    if len(spans) <= _MOST_RUNS:
        runs = [_run(packed, span, trunk, device, dtype) for span in spans]
    else:
        own = torch.from_numpy(packed.visible()[trunk:, seen:]).to(device)
        mask = torch.where(own, torch.zeros((), dtype=dtype, device=device), torch.finfo(dtype).min)[None, None]
        runs = [(slice(0, len(packed) - trunk), slice(seen, packed.offset + len(packed)), mask)]
    blocks = (slice(start, min(start + _BLOCK, trunk)) for start in range(0, trunk, _BLOCK))
    masked = tuple((block, _causal(block.start, block.stop - block.start, device, dtype)) for block in blocks)
    return TreeShape(trunk, seen, int(packed.positions.max(initial=0)) + 1, masked, tuple(runs), device)


def _run(
    packed: PackedPrompts, run: tuple[int, int, tuple[int, ...]], trunk: int, device: torch.device, dtype: torch.dtype
) -> Run:
    start, stop, above = run
    keys: slice | torch.Tensor = slice(start + packed.offset, stop + packed.offset)
    if above:
        keys = torch.tensor([*above, *range(start, stop)], device=device) + packed.offset
    return slice(start - trunk, stop - trunk), keys, _causal(len(above), stop - start, device, dtype)


def _causal(before: int, length: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """The mask of ``length`` tokens that see ``before`` others, those before them and themselves."""
    own = torch.full((length, length), torch.finfo(dtype).min, dtype=dtype, device=device).triu(1)
    return torch.cat([torch.zeros((length, before), dtype=dtype, device=device), own], dim=1)[None, None]


def use_tree_attention(model: Any) -> None:
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

    shape, window = _SHAPE.get(), options.get("sliding_window")
    on_cpu = query.device.type == "cpu"
    # A model may be spread over devices: the mask goes with what it computes, the shape stays where it was made.
    elsewhere = shape is not None and on_cpu != (shape.device.type == "cpu")
    if shape is None or attention_mask is None or elsewhere or (window and shape.depth > window):
        found: tuple[torch.Tensor, None] = sdpa(module, query, key, value, attention_mask, **options)
        return found
    trunk, parts = shape.trunk, []
    if on_cpu:
        # Repeating the heads here is cheaper than the kernel's own way of sharing them.
        key, value = (_heads(tensor, query.shape[1] // tensor.shape[1]) for tensor in (key, value))
        module = _SINGLE
        for rows, mask in shape.blocks:
            seen = slice(rows.stop)
            parts.append(sdpa(module, query[:, :, rows], key[:, :, seen], value[:, :, seen], mask, **options)[0])
    elif trunk:
        front = [tensor[:, :, :trunk] for tensor in (query, key, value)]
        parts.append(sdpa(module, *front, None, **{**options, "is_causal": True})[0])
    rest = query[:, :, trunk:]
    if rest.shape[2] >= _SHORTEST_REST and on_cpu:
        parts.append(_behind(rest, key, value, shape, options.get("scaling")))
    elif rest.shape[2]:
        parts.append(sdpa(module, rest, key, value, attention_mask[:, :, trunk:], **options)[0])
    return (parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)), None


def _behind(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, shape: TreeShape, scale: float | None
) -> torch.Tensor:
    """Attention of the tokens behind the trunk: to what all of them see, and run by run to their own."""
    chain, chain_norm = _flash(query, key[:, :, : shape.seen], value[:, :, : shape.seen], None, scale)
    output = torch.empty_like(query)
    for rows, keys, mask in shape.runs:
        own, own_norm = _flash(query[:, :, rows], _at(key, keys), _at(value, keys), mask, scale)
        # softmax over both = the two softmaxes, weighted by their shares of the normaliser
        share = torch.sigmoid(chain_norm[:, :, rows] - own_norm)[..., None]
        output[:, :, rows] = torch.lerp(own, chain[:, :, rows], share.to(own.dtype))
    return output.transpose(1, 2)


def _at(tensor: torch.Tensor, keys: slice | torch.Tensor) -> torch.Tensor:
    return tensor[:, :, keys] if isinstance(keys, slice) else tensor.index_select(2, keys)


def _heads(tensor: torch.Tensor, groups: int) -> torch.Tensor:
    """Keys or values once for every query head that shares them."""
    return tensor if groups == 1 else tensor.repeat_interleave(groups, dim=1)


def _flash(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, scale: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The fused CPU kernel, which also returns the logarithm of each row's normaliser."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    output, norm = kernel(query, key, value, attn_mask=mask, scale=scale)
    return output, norm
