"""What the last token of a text attends to, head by head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from zicl.exceptions import PromptError
from zicl.lm.base import LanguageModel
from zicl.lm.heads import transformers_model


def attended(lm: LanguageModel, tokens: Sequence[int]) -> NDArray[np.float32]:
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
