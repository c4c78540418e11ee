"""Attention for packed trees that skips the pairs of tokens which the tree rules out.

A packed sequence is a trunk (the shared prefix) and short runs that branch off it. Under one explicit mask, a kernel
computes all pairs and then discards those that the mask forbids. Here the trunk is computed in blocks, each with the
keys up to its last token; the tokens after it attend to all of the trunk without a mask, and within the tree each run
attends to its ancestors and itself only. The two parts of a softmax are joined by their normalisers.
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
# For fewer shared keys, or fewer queries after them, the additional kernel calls cost more than they save.
_MIN_SHARED, _MIN_REST = 64, 48
# Above this number of runs (many labels, short branches), one masked call for all is cheaper than one call per run.
_MAX_RUNS = 24
# Queries of the trunk per call. The causal CPU kernel computes nearly all pairs of 512 tokens; blocks save a sixth.
_BLOCK = 64


# The queries of a run, the keys that they see besides the shared ones, and the mask.
Run = tuple[slice, slice | torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class TreeShape:
    """The shape of the packed sequence that is being computed.

    The first ``trunk`` tokens have no branches; ``blocks`` are their queries with masks. All later tokens see the first
    ``shared`` keys (cached prefix and trunk); ``runs`` says what else they see. ``depth`` is the length of the longest
    path, ``device`` the device of the masks.
    """

    trunk: int
    shared: int
    depth: int
    blocks: tuple[tuple[slice, torch.Tensor], ...]
    runs: tuple[Run, ...]
    device: torch.device


# transformers reads the number of heads per key from the module: a bare one says that keys are already repeated.
_UNGROUPED = torch.nn.Module()
# None: use the mask alone.
_SHAPE: ContextVar[TreeShape | None] = ContextVar("shape", default=None)


@contextmanager
def tree_shape(packed: PackedPrompts | None, device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Within the block, compute attention for a sequence of the shape of ``packed``."""
    token = _SHAPE.set(None if packed is None else _shape(packed, device, dtype))
    try:
        yield
    finally:
        _SHAPE.reset(token)


def _shape(packed: PackedPrompts, device: torch.device, dtype: torch.dtype) -> TreeShape | None:
    # A causal kernel aligns the first query with the first key, so there is no trunk after a cached prefix.
    trunk = 0 if packed.offset else packed.trunk
    shared = packed.offset + trunk
    if shared < _MIN_SHARED:
        return None
    spans = list(packed.runs(trunk))
    if len(spans) <= _MAX_RUNS:
        runs = [_run(packed, span, trunk, device, dtype) for span in spans]
    else:
        visible = torch.from_numpy(packed.visible()[trunk:, shared:]).to(device)
        mask = torch.where(visible, torch.zeros((), dtype=dtype, device=device), torch.finfo(dtype).min)[None, None]
        runs = [(slice(0, len(packed) - trunk), slice(shared, packed.offset + len(packed)), mask)]
    blocks = (slice(start, min(start + _BLOCK, trunk)) for start in range(0, trunk, _BLOCK))
    masked = tuple((block, _causal(block.start, block.stop - block.start, device, dtype)) for block in blocks)
    return TreeShape(trunk, shared, int(packed.positions.max(initial=0)) + 1, masked, tuple(runs), device)


def _run(
    packed: PackedPrompts, run: tuple[int, int, tuple[int, ...]], trunk: int, device: torch.device, dtype: torch.dtype
) -> Run:
    start, stop, ancestors = run
    keys: slice | torch.Tensor = slice(start + packed.offset, stop + packed.offset)
    if ancestors:
        keys = torch.tensor([*ancestors, *range(start, stop)], device=device) + packed.offset
    return slice(start - trunk, stop - trunk), keys, _causal(len(ancestors), stop - start, device, dtype)


def _causal(before: int, length: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Return a causal mask for ``length`` tokens that also see ``before`` earlier ones."""
    causal = torch.full((length, length), torch.finfo(dtype).min, dtype=dtype, device=device).triu(1)
    return torch.cat([torch.zeros((length, before), dtype=dtype, device=device), causal], dim=1)[None, None]


def use_tree_attention(model: Any) -> None:
    """Switch a model to tree attention, if it uses PyTorch's fused attention now."""
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
    # In a model that is spread over devices, the mask moves with the hidden states; the shape stays on its device.
    elsewhere = shape is not None and on_cpu != (shape.device.type == "cpu")
    if shape is None or attention_mask is None or elsewhere or (window and shape.depth > window):
        output: tuple[torch.Tensor, None] = sdpa(module, query, key, value, attention_mask, **options)
        return output
    trunk, parts = shape.trunk, []
    if on_cpu:
        # Repeating keys and values here is cheaper than the kernel's grouped heads.
        key, value = (_repeat_heads(tensor, query.shape[1] // tensor.shape[1]) for tensor in (key, value))
        module = _UNGROUPED
        for rows, mask in shape.blocks:
            seen = slice(rows.stop)
            parts.append(sdpa(module, query[:, :, rows], key[:, :, seen], value[:, :, seen], mask, **options)[0])
    elif trunk:
        front = [tensor[:, :, :trunk] for tensor in (query, key, value)]
        parts.append(sdpa(module, *front, None, **{**options, "is_causal": True})[0])
    rest = query[:, :, trunk:]
    if rest.shape[2] >= _MIN_REST and on_cpu:
        parts.append(_attend_after_trunk(rest, key, value, shape, options.get("scaling")))
    elif rest.shape[2]:
        parts.append(sdpa(module, rest, key, value, attention_mask[:, :, trunk:], **options)[0])
    return (parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)), None


def _attend_after_trunk(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, shape: TreeShape, scale: float | None
) -> torch.Tensor:
    """Return the attention of the tokens after the trunk: to the shared keys, and run by run to the others."""
    shared, shared_norm = _flash(query, key[:, :, : shape.shared], value[:, :, : shape.shared], None, scale)
    output = torch.empty_like(query)
    for rows, keys, mask in shape.runs:
        run, run_norm = _flash(query[:, :, rows], _select(key, keys), _select(value, keys), mask, scale)
        # The softmax over both is the two softmaxes, weighted by their shares of the normaliser.
        share = torch.sigmoid(shared_norm[:, :, rows] - run_norm)[..., None]
        output[:, :, rows] = torch.lerp(run, shared[:, :, rows], share.to(run.dtype))
    return output.transpose(1, 2)


def _select(tensor: torch.Tensor, keys: slice | torch.Tensor) -> torch.Tensor:
    return tensor[:, :, keys] if isinstance(keys, slice) else tensor.index_select(2, keys)


def _repeat_heads(tensor: torch.Tensor, groups: int) -> torch.Tensor:
    """Repeat keys or values for every query head that shares them."""
    return tensor if groups == 1 else tensor.repeat_interleave(groups, dim=1)


def _flash(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, scale: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Call the fused CPU kernel, which also returns the logarithm of each row's normaliser."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    output, norm = kernel(query, key, value, attn_mask=mask, scale=scale)
    return output, norm
