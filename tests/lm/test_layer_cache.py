"""Layers below all silenced heads are computed once per batch, and no score changes."""

from functools import partial

import numpy as np
import pytest

from tests.conftest import tiny_lm
from tests.lm.families import NAMES, difference, model, some_prompts
from zicl.lm.heads import Head, head_layout, silence_heads
from zicl.lm.layer_cache import LowerLayerCache
from zicl.prompt.builder import Branch, Prompt
from zicl.prompt.tokens import EMPTY, Segment

ALONE = 3  # some_prompts begins with so many that have a prefix of their own


class Counted:
    """How often each layer of a model is run."""

    def __init__(self, lm):
        self.runs, self._handles = [0] * head_layout(lm).layers, []
        for number, projection in enumerate(head_layout(lm).projections):
            self._handles.append(projection.register_forward_hook(lambda *_, own=number: self._count(own)))

    def _count(self, number):
        self.runs[number] += 1

    def stop(self):
        for handle in self._handles:
            handle.remove()
        return self.runs


def without(lm, heads, asked, cache=None):
    if cache is None:
        with silence_heads(lm, heads):
            return lm.score(asked)
    with silence_heads(lm, heads), lm.forward.use_layer_cache(cache):
        return lm.score(asked)


@pytest.mark.parametrize("name", NAMES)
def test_every_digit_is_the_same(name):
    lm, asked = model(name), some_prompts(np.random.default_rng(1))
    last = head_layout(lm).layers - 1
    cache = LowerLayerCache(head_layout(lm).blocks[:last])
    for heads in ([], [Head(last, 0)], [Head(last, 1), Head(last, 2)], []):
        assert difference(without(lm, heads, asked, cache), without(lm, heads, asked)) == 0
    untouched = lm.score(asked)
    assert difference(without(lm, [], asked), untouched) == 0
    assert all("forward" not in vars(block) for block in head_layout(lm).blocks)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_lower_layers_run_once_and_upper_ones_every_time(name):
    lm, asked = tiny_lm(name, batch_size=1), some_prompts(np.random.default_rng(2))[:ALONE]
    cache = LowerLayerCache(head_layout(lm).blocks[:2])
    counted = Counted(lm)
    for heads in ([], [Head(2, 0)], [Head(2, 3)]):
        without(lm, heads, asked, cache)
    assert counted.stop() == [ALONE, ALONE, 3 * ALONE]


def test_another_batch_of_the_same_prompts_is_run_anew():
    lm, asked = tiny_lm(), some_prompts(np.random.default_rng(3))[:2]
    cache = LowerLayerCache(head_layout(lm).blocks[:2])
    both = without(lm, [], asked, cache)
    counted = Counted(lm)
    first = without(lm, [], asked[:1], cache)
    assert counted.stop() == [1, 1, 1]
    assert difference(first, both[:1]) < 1e-5


def test_the_same_tokens_with_other_branches_are_another_batch():
    """Two labels of one token each, and one of two tokens, are written down as the same tokens."""
    lm = tiny_lm()
    cache = LowerLayerCache(head_layout(lm).blocks[:2])
    prefix, tail = Segment("", tuple(range(2, 12))), Segment("", (30,))
    fork = Prompt(prefix, EMPTY, tuple(Branch(Segment("", (n,)), tail) for n in (20, 21)))
    line = Prompt(prefix, EMPTY, (Branch(Segment("", (20, 21)), tail),))
    without(lm, [], [fork], cache)
    assert difference(without(lm, [], [line], cache), without(lm, [], [line])) == 0


def test_memory_is_bounded_and_given_back():
    lm, asked = tiny_lm(batch_size=1), some_prompts(np.random.default_rng(4))[:ALONE]
    longest = max(asked, key=lambda prompt: sum(map(len, [prompt.prefix, *(b.scored for b in prompt.branches)])))
    cache = LowerLayerCache(head_layout(lm).blocks[:2], max_bytes=0)
    counted = Counted(lm)
    without(lm, [], [longest], cache)
    without(lm, [], [longest], cache)
    assert counted.stop() == [2, 2, 2]
    assert not cache.clear()
    cache = LowerLayerCache(head_layout(lm).blocks[:2])
    without(lm, [], asked, cache)
    assert cache.clear()
    assert not cache.clear()


def test_what_was_used_last_is_kept_longest():
    lm = tiny_lm(batch_size=1)
    first, second, third = (some_prompts(np.random.default_rng(seed))[0] for seed in (5, 6, 7))
    unlimited = LowerLayerCache(head_layout(lm).blocks[:2])
    without(lm, [], [first], unlimited)
    each = sum(tensor.nbytes for tensor in unlimited._outputs.values())
    cache = LowerLayerCache(head_layout(lm).blocks[:2], max_bytes=2 * each)
    for prompt in (first, second, first, third):
        without(lm, [], [prompt], cache)
    counted = Counted(lm)
    without(lm, [], [first], cache)
    assert counted.stop() == [0, 0, 1]
    counted = Counted(lm)
    without(lm, [], [second], cache)
    assert counted.stop() == [1, 1, 1]


def test_an_error_leaves_the_model_as_it_was(monkeypatch):
    lm, asked = tiny_lm(), some_prompts(np.random.default_rng(8))[:ALONE]
    cache, before = LowerLayerCache(head_layout(lm).blocks[:2]), lm.score(asked)
    without(lm, [], asked, cache)
    own = head_layout(lm).blocks[0].forward
    with monkeypatch.context() as patch:
        patch.setattr(head_layout(lm).blocks[2], "forward", lambda *_, **__: {}["nothing"])
        with pytest.raises(KeyError):
            without(lm, [], asked, cache)
    assert head_layout(lm).blocks[0].forward == own
    assert lm.forward.layer_cache is None
    assert difference(lm.score(asked), before) == 0


def test_a_layer_with_a_forward_of_its_own_keeps_it():
    lm, asked = tiny_lm(), some_prompts(np.random.default_rng(9))[:1]
    block = head_layout(lm).blocks[0]
    usual = block.forward
    block.forward = own = partial(usual)
    try:
        cache = LowerLayerCache(head_layout(lm).blocks[:2])
        one, other = without(lm, [], asked, cache), without(lm, [], asked, cache)
        assert vars(block)["forward"] is own
        assert difference(one, other) == 0
    finally:
        del block.forward


def test_attention_weights_of_a_family_that_gives_them_are_not_kept():
    lm, asked = model("gptj"), some_prompts(np.random.default_rng(10))[:1]
    cache = LowerLayerCache(head_layout(lm).blocks[:1])
    without(lm, [], asked, cache)
    (kept,) = cache._outputs.values()
    assert isinstance(kept, tuple)
    assert kept[1:] == (None,) * (len(kept) - 1)
