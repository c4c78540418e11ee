"""Attention heads: find them in a model, silence some of them, and read what the last token attends to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from zicl.exceptions import ConfigError, HeadsError, PromptError
from zicl.lm.base import LanguageModel
from zicl.lm.hf import HFLanguageModel
from zicl.lm.linear import PackedLinear


class Head(NamedTuple):
    """An attention head: its layer and its number within the layer, from 0. Heads that share keys count separately.

    >>> str(Head(14, 6))
    '14.6'
    """

    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}"


class ProjectionPath(NamedTuple):
    """The module paths of an architecture: its layers, and in each the output projection, which joins the heads.

    ``axis`` is the axis of the projection's weights that its input, and so the heads, lies along.
    """

    layers: str
    projection: str
    axis: int


_ROWS, _COLUMNS = 0, 1
_LLAMA = ProjectionPath("layers", "self_attn.o_proj", _COLUMNS)
# By the model type of transformers. GPT-2's projection is a Conv1D, whose weights are transposed.
FAMILIES: Mapping[str, ProjectionPath] = {
    "gpt2": ProjectionPath("h", "attn.c_proj", _ROWS),
    "gptj": ProjectionPath("h", "attn.out_proj", _COLUMNS),
    "gpt_neox": ProjectionPath("layers", "attention.dense", _COLUMNS),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gemma": _LLAMA,
    "gemma2": _LLAMA,
    "gemma3_text": _LLAMA,
}


@dataclass(frozen=True, eq=False)
class HeadLayout:
    """The heads of a model: ``heads`` per layer, of ``size`` numbers each, side by side in the projection's input."""

    heads: int
    size: int
    blocks: tuple[torch.nn.Module, ...]
    projections: tuple[torch.nn.Module, ...]

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(self.projections)

    def check(self, head: Head) -> None:
        """Check that the model has this head."""
        if not (0 <= head.layer < self.layers and 0 <= head.head < self.heads):
            raise ConfigError(
                f"there is no head {head}: the model has {self.layers} layers of {self.heads} heads",
                hint=f"heads are written LAYER.HEAD, from 0.0 to {Head(self.layers - 1, self.heads - 1)}",
            )


def transformers_model(lm: LanguageModel) -> HFLanguageModel:
    """Return the same model, if it is one of transformers: only there the heads can be reached."""
    if not isinstance(lm, HFLanguageModel):
        raise HeadsError(
            f"the attention heads of {lm.name} cannot be reached",
            hint="use a model of transformers: a catalog name, hf:ID, a folder or gguf:FILE",
        )
    return lm


def head_layout(lm: LanguageModel) -> HeadLayout:
    """Return where the heads of a model are."""
    forward = transformers_model(lm).forward
    family = str(forward.config.model_type)
    if family not in FAMILIES:
        raise HeadsError(
            f"{lm.name} has the architecture {family!r}, whose attention heads are not known",
            hint=f"use one of: {', '.join(FAMILIES)}; or add its output projection to zicl.lm.heads.FAMILIES",
        )
    path, heads = FAMILIES[family], int(forward.config.num_attention_heads)
    # Not always the hidden size divided by the number of heads: Gemma and Qwen3 set it separately.
    size = int(getattr(forward.config, "head_dim", None) or forward.config.hidden_size // heads)
    blocks = tuple(forward.model.get_decoder().get_submodule(path.layers).children())
    projections = tuple(block.get_submodule(path.projection) for block in blocks)
    for number, projection in enumerate(projections):
        if _input_width(projection, path.axis) != heads * size:
            raise HeadsError(
                f"{lm.name}: the output projection of layer {number} does not take {heads} heads of {size} numbers",
                hint="load the model without quantisation and without changes to its layers",
            )
    return HeadLayout(heads, size, blocks, projections)


def _input_width(projection: torch.nn.Module, axis: int) -> int | None:
    """Return how many numbers a projection takes; none if it is not the plain layer of its architecture."""
    if isinstance(projection, PackedLinear):
        return projection.in_features
    weight = projection.weight
    return int(weight.shape[axis]) if isinstance(weight, torch.nn.Parameter) else None


@contextmanager
def silence_heads(lm: LanguageModel, heads: Iterable[Head]) -> Iterator[None]:
    """Within the block, set the output of these heads to zero in everything that the model computes.

    >>> with silence_heads(lm, [Head(14, 6)]):  # doctest: +SKIP
    ...     scores = lm.score(prompts)
    """
    model, layout = transformers_model(lm), head_layout(lm)
    by_layer: dict[int, set[int]] = {}
    for head in heads:
        layout.check(head)
        by_layer.setdefault(head.layer, set()).add(head.head)
    handles = []
    # A cached prefix was computed with other heads.
    model.forget_prefix()
    try:
        for layer, numbers in by_layer.items():
            hook = _zero_hook(numbers, layout)
            handles.append(layout.projections[layer].register_forward_pre_hook(hook))
        yield
    finally:
        for handle in handles:
            handle.remove()
        model.forget_prefix()


def _zero_hook(heads: set[int], layout: HeadLayout) -> Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]:
    """Return a hook that zeroes these heads in the input of a projection."""
    mask = torch.zeros(layout.heads, layout.size, dtype=torch.bool)
    mask[sorted(heads)] = True
    flat = mask.reshape(-1)

    def zero(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        # Filled, not multiplied: zero times infinity is not zero.
        return (inputs[0].masked_fill(flat.to(inputs[0].device), 0), *inputs[1:])

    return zero


def last_token_attention(lm: LanguageModel, tokens: Sequence[int]) -> NDArray[np.float32]:
    """Return the attention weights of the last token to each token: layers x heads x tokens.

    All tokens but the last are computed with the usual fused attention, which returns no weights. Only the last, with
    the others cached, is computed with eager attention: one row of weights per head, however long the text is.
    """
    from transformers import DynamicCache

    if len(tokens) < 2:
        raise PromptError("there is no token before the last one to attend to", hint="use at least one demonstration")
    forward = transformers_model(lm).forward
    ids = torch.tensor([list(tokens)], device=forward.device)
    # A cache built from the configuration would drop the tokens outside of a sliding window, and shift the others.
    cache = DynamicCache()
    with torch.inference_mode():
        forward.body(input_ids=ids[:, :-1], past_key_values=cache, use_cache=True)
        with _eager_attention(forward.model):
            output = forward.body(input_ids=ids[:, -1:], past_key_values=cache, use_cache=True, output_attentions=True)
    attention: NDArray[np.float32] = np.stack([w[0, :, -1].float().cpu().numpy() for w in output.attentions])
    return attention


@contextmanager
def _eager_attention(model: Any) -> Iterator[None]:
    """Within the block, use the model's eager attention, which also returns the weights."""
    usual = model.config.get_text_config()._attn_implementation
    if usual == "eager":
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(usual)
