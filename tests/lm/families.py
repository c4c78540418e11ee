"""A tiny model of every architecture whose heads are known, and prompts for all kinds of scoring."""

import numpy as np
import torch

from tests.conftest import byte_tokenizer, tiny_lm
from zicl.lm.heads import head_layout
from zicl.lm.hf import HFLanguageModel
from zicl.prompt.builder import Branch, Prompt
from zicl.prompt.tokens import EMPTY, Segment

# Of every type in the table a tiny model. Hidden size 32 with 4 heads would be heads of 8: most have others.
SHARED = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 512, "vocab_size": 400, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1,
}  # fmt: skip
GROUPED = {"num_key_value_heads": 2, **SHARED}
BUILT = {
    "mistral": ("MistralConfig", {"head_dim": 6, "sliding_window": None, **GROUPED}),
    "qwen2": ("Qwen2Config", GROUPED),
    "qwen3": ("Qwen3Config", {"head_dim": 10, **GROUPED}),
    "gemma": ("GemmaConfig", {"head_dim": 12, **GROUPED, "num_key_value_heads": 1}),
    "gemma2": ("Gemma2Config", {"head_dim": 12, "sliding_window": 16, **GROUPED}),
    "llama with biases": ("LlamaConfig", {"head_dim": 14, "attention_bias": True, **GROUPED}),
    "qwen3 of many heads": ("Qwen3Config", {"head_dim": 4, **GROUPED, "num_attention_heads": 6}),
}
OWN = {"gpt2": "gpt2", "gptj": "gptj", "gpt_neox": "neox", "llama": "llama", "gemma3_text": "gemma3"}
NAMES = [*OWN, *BUILT]
MODELS = {}


def built(config, options):
    import transformers as hf

    torch.manual_seed(6)
    model = hf.AutoModelForCausalLM.from_config(getattr(hf, config)(**options))
    for name, parameter in model.named_parameters():
        # Also biases, which begin as zeros; the parts of a norm stay what they are.
        if "norm" not in name and "ln" not in name:
            parameter.data.normal_(0, 0.15)
    return HFLanguageModel(model, byte_tokenizer(), name=config, identity=config)


def model(name):
    if name not in MODELS:
        MODELS[name] = with_biases(tiny_lm(OWN[name])) if name in OWN else built(*BUILT[name])
    return MODELS[name]


def with_biases(lm):
    """The biases of output projections, which begin as zeros: a test of them would say nothing."""
    for projection in head_layout(lm).projections:
        if getattr(projection, "bias", None) is not None:
            projection.bias.data.normal_(0, 0.15, generator=torch.Generator().manual_seed(7))
    return lm


def seg(draw, length):
    return Segment("", tuple(draw.integers(2, 400, length).tolist()))


def some_prompts(draw):
    """Prompts of all ways to score: alone, padded in a batch, with a prefix in common, with long branches."""
    shared = seg(draw, 90)
    labels = tuple(Branch(EMPTY, seg(draw, n)) for n in (1, 3))
    texts = tuple(Branch(seg(draw, 2), seg(draw, 50)) for _ in range(2))
    return [
        Prompt(seg(draw, 20), seg(draw, 4), labels),
        Prompt(seg(draw, 30), seg(draw, 4), labels),
        Prompt(seg(draw, 80), EMPTY, texts),
        *(Prompt(shared, seg(draw, 5), labels) for _ in range(3)),
    ]


def difference(one, other):
    return max(float(np.abs(a - b).max()) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))
