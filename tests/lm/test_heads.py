"""Silencing a head by hook is zeroing its slice of the output projection's weights, in every family."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import tiny_lm
from tests.lm.families import NAMES, difference, model, some_prompts
from zicl.exceptions import ConfigError, HeadsError
from zicl.lm.heads import FAMILIES, Head, head_layout, last_token_attention, silence_heads


@contextmanager
def cut_out(lm, heads):
    """The other way to silence: zeros in the weights, written out as the family keeps them."""
    places = head_layout(lm)
    saved = [projection.weight.detach().clone() for projection in places.projections]
    try:
        for layer, head in heads:
            weight = places.projections[layer].weight.data
            own = slice(head * places.size, (head + 1) * places.size)
            if type(places.projections[layer]).__name__ == "Conv1D":
                weight[own] = 0
            else:
                weight[:, own] = 0
        lm.forget_prefix()
        yield
    finally:
        for projection, weight in zip(places.projections, saved, strict=True):
            projection.weight.data = weight
        lm.forget_prefix()


def test_every_family_of_the_table_is_here():
    assert {model(name).forward.config.model_type for name in NAMES} == set(FAMILIES)
    for name in NAMES:
        weight = head_layout(model(name)).projections[0].weight
        places, axis = head_layout(model(name)), FAMILIES[model(name).forward.config.model_type].axis
        assert weight.shape[axis] == places.heads * places.size
    sizes = {name: (head_layout(model(name)).size, 32 // head_layout(model(name)).heads) for name in NAMES}
    assert sum(mine != shared for mine, shared in sizes.values()) >= 5
    assert (
        sum(getattr(model(n).forward.config, "num_key_value_heads", 4) < head_layout(model(n)).heads for n in NAMES)
        >= 5
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("trees", [True, False])
def test_a_hook_equals_zeros_in_the_weights(name, trees, monkeypatch):
    lm = model(name)
    assert lm.supports_trees
    monkeypatch.setattr(lm, "supports_trees", trees)
    asked = some_prompts(np.random.default_rng(4))
    places = head_layout(lm)
    untouched = lm.score(asked)
    last = Head(places.layers - 1, places.heads - 1)
    for heads in ([Head(0, 0)], [Head(0, 1)], [last], [Head(0, 2), Head(1, 0), Head(1, 1), last]):
        with silence_heads(lm, heads):
            hooked = lm.score(asked)
        with cut_out(lm, heads):
            cut = lm.score(asked)
        assert difference(hooked, cut) <= 1e-6
        assert difference(hooked, untouched) > 1e-3
    assert difference(lm.score(asked), untouched) == 0


@pytest.mark.parametrize("name", NAMES)
def test_with_all_heads_silenced_attention_gives_the_projections_bias(name):
    lm = model(name)
    places, given_ = head_layout(lm), []
    blocks = [
        module for module in lm.forward.model.modules() if any(c in places.projections for c in module.children())
    ]
    assert len(blocks) == places.layers
    hooks = [block.register_forward_hook(lambda _, __, output: given_.append(output[0])) for block in blocks]
    try:
        with silence_heads(lm, [Head(x, y) for x in range(places.layers) for y in range(places.heads)]):
            lm.score(some_prompts(np.random.default_rng(5)))
    finally:
        for hook in hooks:
            hook.remove()
    assert len(given_) >= 3 * places.layers
    for number, output in enumerate(given_):
        bias = getattr(places.projections[number % places.layers], "bias", None)
        assert (bias is not None) == (name in ("gpt2", "gpt_neox", "llama with biases"))
        assert bias is None or bias.abs().max() > 0
        expected = torch.zeros(output.shape[-1]) if bias is None else bias
        assert torch.equal(output, expected.expand_as(output))


def test_what_a_prefix_left_behind_is_not_used_across_the_border():
    lm = model("llama")
    asked = some_prompts(np.random.default_rng(6))[-3:]
    before = lm.score(asked)
    with silence_heads(lm, [Head(0, 0)]):
        inside = lm.score(asked)
    with cut_out(lm, [Head(0, 0)]):
        assert difference(inside, lm.score(asked)) <= 1e-6
    assert difference(lm.score(asked), before) == 0


heads = st.sets(st.builds(Head, st.integers(0, 2), st.integers(0, 3)), max_size=5)


@given(heads, heads)
def test_blocks_within_blocks_are_both(outer, inner):
    lm, asked = model("llama"), some_prompts(np.random.default_rng(7))[:1]
    with silence_heads(lm, outer), silence_heads(lm, inner):
        both = lm.score(asked)
    with silence_heads(lm, outer | inner):
        assert difference(both, lm.score(asked)) == 0


def test_hooks_go_whatever_happens():
    lm, asked = model("gpt2"), some_prompts(np.random.default_rng(8))[:1]
    before = lm.score(asked)
    with pytest.raises(KeyError), silence_heads(lm, [Head(0, 0)]):
        raise KeyError
    with (
        pytest.raises(ConfigError, match=r"no head 0\.4: the model has 3 layers of 4"),
        silence_heads(lm, [Head(0, 1), Head(0, 4)]),
    ):
        pass
    with pytest.raises(ConfigError, match=r"no head 3\.0"), silence_heads(lm, [Head(3, 0)]):
        pass
    with pytest.raises(ConfigError, match=r"no head -1\.0"), silence_heads(lm, [Head(-1, 0)]):
        pass
    assert all(not projection._forward_pre_hooks for projection in head_layout(lm).projections)
    assert difference(lm.score(asked), before) == 0


def test_models_whose_heads_are_not_known():
    with (
        pytest.raises(HeadsError, match="'bloom', whose attention heads are not known"),
        silence_heads(tiny_lm("bloom"), [Head(0, 0)]),
    ):
        pass

    class Other:
        name = "other"

    with pytest.raises(HeadsError, match="of other cannot be reached"):
        head_layout(Other())


@pytest.mark.parametrize("name", NAMES)
def test_attention_of_the_last_token_is_the_last_row_of_all(name):
    lm = model(name)
    tokens = np.random.default_rng(9).integers(2, 400, 75).tolist()
    usual = lm.forward.config._attn_implementation
    found = last_token_attention(lm, tokens)
    assert lm.forward.config._attn_implementation == usual
    lm.forward.model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            whole = lm.forward.model(input_ids=torch.tensor([tokens]), output_attentions=True, use_cache=False)
    finally:
        lm.forward.model.set_attn_implementation(usual)
    expected = np.stack([layer[0, :, -1].numpy() for layer in whole.attentions])
    assert found.shape == (head_layout(lm).layers, head_layout(lm).heads, 75)
    assert np.abs(found - expected).max() < 1e-5
    assert np.abs(found.sum(axis=-1) - 1).max() < 1e-5


def test_silenced_heads_still_look_but_those_above_them_see_other_things():
    lm, tokens = model("llama"), list(range(2, 40))
    before = last_token_attention(lm, tokens)
    with silence_heads(lm, [Head(0, 1)]):
        after = last_token_attention(lm, tokens)
    assert np.abs(after[0] - before[0]).max() == 0
    assert np.abs(after[1:] - before[1:]).max() > 1e-3
