"""Packed linear layers: the same numbers as torch's, on real layers and on tiny models of several architectures."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import byte_tokenizer
from tests.lm.families import NAMES, difference, model, some_prompts
from zicl.lm.heads import Head, silence_heads
from zicl.lm.hf import HFLanguageModel
from zicl.lm.linear import PackedLinear, multiply, pack_linear_layers, supports_onednn

pytestmark = pytest.mark.skipif(
    not supports_onednn(torch.ones(1, 1)), reason="oneDNN is used on x86 processors only; elsewhere nothing is packed"
)


@given(
    rows=st.integers(1, 70),
    wide=st.integers(1, 90),
    high=st.integers(1, 90),
    bias=st.booleans(),
    seed=st.integers(0, 9),
)
def test_a_packed_layer_computes_what_the_layer_does(rows, wide, high, bias, seed):
    generator = torch.Generator().manual_seed(seed)
    layer = torch.nn.Linear(wide, high, bias=bias)
    torch.nn.init.normal_(layer.weight, generator=generator)
    states = torch.randn(rows, wide, generator=generator)
    with torch.inference_mode():
        expected, packed = layer(states), PackedLinear(layer)
        # Double precision is what both are rounded from.
        exact = states.double() @ layer.weight.double().T + (0 if layer.bias is None else layer.bias.double())
        assert torch.allclose(packed(states).double(), exact, atol=1e-4)
        assert torch.allclose(multiply(states, layer.weight, layer.bias), expected, atol=1e-4)
        assert torch.allclose(packed(states[None]), packed(states)[None], atol=0)


def test_models_that_read_the_weights_of_their_layers_are_left_alone():
    import transformers

    config = transformers.MambaConfig(hidden_size=16, num_hidden_layers=1, vocab_size=40, state_size=4)
    body = transformers.AutoModelForCausalLM.from_config(config).eval()
    assert pack_linear_layers(body) == 0
    with torch.inference_mode():
        assert torch.isfinite(body(input_ids=torch.tensor([[1, 2, 3]])).logits).all()


def test_only_float32_on_a_cpu_is_packed():
    assert not supports_onednn(torch.ones(2, 2, dtype=torch.bfloat16))
    assert not supports_onednn(torch.ones(2, 2, device="meta"))


@pytest.mark.parametrize("name", NAMES)
def test_a_packed_model_scores_as_before(name):
    lm = model(name)
    body = copy.deepcopy(lm.forward.model)
    count = pack_linear_layers(body)
    # GPT-2 has no linear layers, but another kind with transposed weights.
    assert (count == 0) == (name == "gpt2")
    assert count == sum(isinstance(each, PackedLinear) for each in body.modules())
    packed = HFLanguageModel(body, byte_tokenizer(), name=name, identity=name)
    prompts = some_prompts(np.random.default_rng(3))
    assert difference(packed.score(prompts), lm.score(prompts)) < 1e-4
    # The heads of packed layers are found and silenced as well.
    with silence_heads(lm, [Head(1, 2)]), silence_heads(packed, [Head(1, 2)]):
        assert difference(packed.score(prompts), lm.score(prompts)) < 1e-4
