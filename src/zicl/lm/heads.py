"""Attention heads: where each family of models joins them, and how some are silenced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from zicl.exceptions import ConfigError, HeadsError, PromptError
from zicl.lm.base import LanguageModel

if TYPE_CHECKING:
    from zicl.lm.hf import HFLanguageModel


class Head(NamedTuple):
    """One attention head by its layer and its number there, both from 0; heads that share keys are heads of their own.

    >>> str(Head(14, 6))
    '14.6'
    """

    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}"


class HeadInput(NamedTuple):
    """Where a family keeps its layers, and in each the projection that joins the heads.

    ``axis`` is the side of the projection's weights its input, and so the heads, lies along.
    """

    layers: str
    projection: str
    axis: int


_ROWS, _COLUMNS = 0, 1
_LLAMA = HeadInput("layers", "self_attn.o_proj", _COLUMNS)
# By transformers' name of the model type. GPT-2's projection is a Conv1D, whose weights are turned round.
FAMILIES: Mapping[str, HeadInput] = {
    "gpt2": HeadInput("h", "attn.c_proj", _ROWS),
    "gptj": HeadInput("h", "attn.out_proj", _COLUMNS),
    "gpt_neox": HeadInput("layers", "attention.dense", _COLUMNS),
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
    """A model's heads: ``heads`` of ``size`` numbers each, side by side in the input of each layer's projection."""

    heads: int
    size: int
    blocks: tuple[torch.nn.Module, ...]
    projections: tuple[torch.nn.Module, ...]

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len(self.projections)

    def check(self, head: Head) -> None:
        """There is such a head."""
        if not (0 <= head.layer < self.layers and 0 <= head.head < self.heads):
            raise ConfigError(
                f"there is no head {head}: the model has {self.layers} layers of {self.heads} heads",
                hint=f"heads are written LAYER.HEAD, from 0.0 to {Head(self.layers - 1, self.heads - 1)}",
            )


def transformers_model(lm: LanguageModel) -> HFLanguageModel:
    """The same model, as one whose heads can be reached."""
    from zicl.lm.hf import HFLanguageModel

    if not isinstance(lm, HFLanguageModel):
        raise HeadsError(
            f"the attention heads of {lm.name} cannot be reached",
            hint="use a model of transformers: a catalog name, hf:ID, a folder or gguf:FILE",
        )
    return lm


def head_layout(lm: LanguageModel) -> HeadLayout:
    """Where the heads of a model are."""
    from torch.nn import Parameter

    forward = transformers_model(lm).forward
    family = str(forward.config.model_type)
    if family not in FAMILIES:
        raise HeadsError(
            f"{lm.name} is of the family {family!r}, whose attention heads are not known",
            hint=f"use a model of: {', '.join(FAMILIES)}; or add its output projection to zicl.lm.heads.FAMILIES",
        )
    place, heads = FAMILIES[family], int(forward.config.num_attention_heads)
    # Not always the hidden size shared out: Gemma's and Qwen3's heads have a size of their own.
    size = int(getattr(forward.config, "head_dim", None) or forward.config.hidden_size // heads)
    blocks = tuple(forward.model.get_decoder().get_submodule(place.layers).children())
    projections = tuple(block.get_submodule(place.projection) for block in blocks)
    for number, projection in enumerate(projections):
        weight = projection.weight
        if not isinstance(weight, Parameter) or weight.shape[place.axis] != heads * size:
            raise HeadsError(
                f"{lm.name}: the output projection of layer {number} does not read {heads} heads of {size} numbers",
                hint="load the model without quantisation or other changes to its layers",
            )
    return HeadLayout(heads, size, blocks, projections)


@contextmanager
def silence_heads(lm: LanguageModel, heads: Iterable[Head]) -> Iterator[None]:
    """Within the block these heads give nothing, in every score that the model makes.

    >>> with silence_heads(lm, [Head(14, 6)]):  # doctest: +SKIP
    ...     scores = lm.score(prompts)
    """
    model, places = transformers_model(lm), head_layout(lm)
    by_layer: dict[int, set[int]] = {}
    for head in heads:
        places.check(head)
        by_layer.setdefault(head.layer, set()).add(head.head)
    handles = []
    # What a prefix left behind was made with other heads than what follows would be.
    model.forget_prefix()
    try:
        for layer, own in by_layer.items():
            projection = places.projections[layer]
            handles.append(projection.register_forward_pre_hook(_zeroing(own, places)))
        yield
    finally:
        for handle in handles:
            handle.remove()
        model.forget_prefix()


def _zeroing(heads: set[int], places: HeadLayout) -> Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]:
    """A hook that zeroes the heads' part of a projection's input."""
    import torch

    mask = torch.zeros(places.heads, places.size, dtype=torch.bool)
    mask[sorted(heads)] = True
    flat = mask.reshape(-1)

    def zero(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        # Filled, not multiplied: nothing times infinity is not nothing.
        return (given[0].masked_fill(flat.to(given[0].device), 0), *given[1:])

    return zero


# -- What the last token of a text attends to, head by head.


def last_token_attention(lm: LanguageModel, tokens: Sequence[int]) -> NDArray[np.float32]:
    """How much of its attention each head gives to each token, from the last one: layers × heads × tokens.

    All tokens but the last go through the usual fast attention, which keeps no weights. Only the last, behind their
    cache, goes through the model's own plain attention: its weights are one row a head, however long the text is.
    """
    from transformers import DynamicCache

    if len(tokens) < 2:
        raise PromptError("there is nothing before the last token to attend to", hint="show a demonstration")
    forward = transformers_model(lm).forward
    ids = torch.tensor([list(tokens)], device=forward.device)
    # Built from the configuration the cache would forget what lies beyond a sliding window, and keys lose their places.
    cache = DynamicCache()
    with torch.inference_mode():
        forward.body(input_ids=ids[:, :-1], past_key_values=cache, use_cache=True)
        with _plain_attention(forward.model):
            output = forward.body(
                input_ids=ids[:, -1:],
                past_key_values=cache,
                use_cache=True,
                output_attentions=True,
            )
    rows = [weights[0, :, -1].float().cpu().numpy() for weights in output.attentions]
    found: NDArray[np.float32] = np.stack(rows)
    return found


@contextmanager
def _plain_attention(model: Any) -> Iterator[None]:
    """Within the block the model attends its own plain way, which gives the weights too."""
    usual = model.config.get_text_config()._attn_implementation
    if usual == "eager":
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(usual)
