"""Memory that runs out: batches are halved, every prompt is scored once, and no score changes."""

import logging
import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import tiny_lm
from zicl.exceptions import ModelError
from zicl.lm.batching import AdaptiveBatcher, BatchLimits, is_out_of_memory
from zicl.lm.heads import head_layout
from zicl.lm.layer_cache import LowerLayerCache
from zicl.prompt.builder import Branch, Prompt
from zicl.prompt.tokens import EMPTY, Segment

limits = st.builds(BatchLimits, st.integers(1, 16), st.integers(1, 1000), st.booleans())
some_sizes = st.lists(st.integers(1, 300), max_size=60)


class Memory:
    """Computes what fits, and notes what was tried."""

    def __init__(self, sizes, limits, most=math.inf):
        self.sizes, self.limits, self.most, self.tried, self.failed = sizes, limits, most, [], 0

    def __call__(self, batch):
        tokens = self.limits.cost([self.sizes[n] for n in batch])
        self.tried.append(tokens)
        if tokens > self.most:
            self.failed += 1
            raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 20.00 MiB.")
        return [self.sizes[n] for n in batch]


@given(sizes=some_sizes, limits=limits, most=st.integers(1, 3000))
def test_what_fits_is_computed_once_and_what_failed_is_not_tried_again(sizes, limits, most):
    batcher, memory, found = AdaptiveBatcher("tiny"), Memory(sizes, limits, most), []
    too_long = max(sizes, default=0) > most
    with pytest.raises(ModelError, match="of a single prompt") if too_long else nullcontext():
        for batch, result in batcher.batches(sizes, memory, limits):
            assert result == [sizes[n] for n in batch]
            found += batch
    # The longest go first: where one is too long, nothing was computed in vain.
    assert sorted(found) == ([] if too_long else list(range(len(sizes))))
    assert found == sorted(found, key=lambda n: -sizes[n])
    # Each failure at least halves what is tried next, so that there are few.
    assert memory.failed <= math.log2(max(memory.tried, default=1)) + 1
    for tried, later in zip(memory.tried, memory.tried[1:], strict=False):
        assert later <= tried // 2 or later in sizes or tried <= most


@given(sizes=some_sizes, limits=limits)
def test_with_memory_enough_batches_are_what_the_limits_say(sizes, limits):
    batcher = AdaptiveBatcher("tiny")
    found = [batch for batch, _ in batcher.batches(sizes, Memory(sizes, limits), limits)]
    order = sorted(range(len(sizes)), key=lambda n: -sizes[n])
    expected = []
    for number in order:
        together = [*expected[-1], number] if expected else []
        cost = limits.cost([sizes[n] for n in together])
        if together and len(together) <= limits.prompts and cost <= limits.tokens:
            expected[-1] = together
        else:
            expected.append([number])
    assert found == expected


def test_what_was_learnt_is_kept_and_said_once(caplog):
    caplog.set_level(logging.WARNING, "zicl")
    limits, sizes = BatchLimits(8, 1000), [10] * 8
    batcher, memory = AdaptiveBatcher("tiny"), Memory(sizes, limits, 20)
    assert [len(batch) for batch, _ in batcher.batches(sizes, memory, limits)] == [2, 2, 2, 2]
    assert memory.tried == [80, 40, 20, 20, 20, 20]
    again = Memory(sizes, limits, 20)
    assert len(list(batcher.batches(sizes, again, limits))) == 4
    assert again.failed == 0
    assert [record.getMessage() for record in caplog.records] == [
        "tiny: memory ran out with 80 tokens in a batch; continuing with at most 40, or fewer if necessary"
    ]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 8.1 GB, max allowed: 9.0 GB)."), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: …"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 17179869184 bytes."), True),
        (RuntimeError("HIP out of memory. Tried to allocate 2.00 GiB.", "more"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (MemoryError(), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_errors_that_say_memory_ran_out(error, expected):
    assert is_out_of_memory(error) is expected


# -- a model that runs out of memory half-way through its layers ---------------------------------------


def seg(tokens):
    return Segment("", tuple(int(token) for token in tokens))


def make_prompts(*, shared, count=12):
    """Prompts behind one prefix, or each with its own."""
    draw = np.random.default_rng(3)
    one = seg(draw.integers(2, 400, 90))
    return [
        Prompt(
            one if shared else seg(draw.integers(2, 400, 40 + 5 * number)),
            seg(draw.integers(2, 400, 20)),
            tuple(Branch(EMPTY, seg(draw.integers(2, 400, 3))) for _ in range(3)),
        )
        for number in range(count)
    ]


@pytest.fixture
def short_of_memory():
    """A model whose second layer takes only so many tokens: by then the first has grown the cache."""
    lm = tiny_lm()
    lm.most, lm.failures = 10_000, 0

    def refuse(_, given, options):
        hidden = given[0] if given else options["hidden_states"]
        if hidden.shape[0] * hidden.shape[1] > lm.most:
            lm.failures += 1
            raise torch.OutOfMemoryError("CUDA out of memory.")

    lm.forward.body.layers[1].register_forward_pre_hook(refuse, with_kwargs=True)
    return lm


@pytest.mark.parametrize("shared", [True, False])
def test_scores_are_the_same_in_halves(short_of_memory, shared, caplog):
    lm, prompts, done = short_of_memory, make_prompts(shared=shared), []
    expected = lm.score(prompts)
    lm.forget_prefix()
    lm.most = 130
    found = lm.score(prompts, done.append)
    assert lm.failures > 0
    assert sum(done) == len(prompts)
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert np.abs(a - b).max() < 1e-4
    failures = lm.failures
    lm.score(prompts)
    assert lm.failures == failures
    assert sum("memory ran out" in record.getMessage() for record in caplog.records) == 1


def test_a_prompt_that_does_not_fit_alone_is_an_error(short_of_memory):
    lm = short_of_memory
    lm.most = 30
    for shared in (True, False):
        with pytest.raises(ModelError, match="do not fit into memory: CUDA out of memory") as error:
            lm.score(make_prompts(shared=shared))
        assert "tokens_all_demos" in error.value.hint
    lm.supports_trees = False
    with pytest.raises(ModelError, match="do not fit into memory"):
        lm.score(make_prompts(shared=True, count=1))


def test_states_kept_for_later_are_given_back_once_and_then_the_batch_is_halved(short_of_memory):
    lm, prompts = short_of_memory, make_prompts(shared=False)
    expected = lm.score(prompts)
    cache = LowerLayerCache(head_layout(lm).blocks[:1])
    lm.most = 130
    with lm.forward.use_layer_cache(cache):
        found = lm.score(prompts)
    assert 0 < lm.failures < 20
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert np.abs(a - b).max() < 1e-4
    lm.most = 30
    with lm.forward.use_layer_cache(cache), pytest.raises(ModelError, match="do not fit into memory"):
        lm.score(prompts)


def test_a_prefix_that_does_not_fit_beside_kept_states_is_tried_without_them():
    lm = tiny_lm()
    cache = LowerLayerCache(head_layout(lm).blocks[:1])
    tries = []

    def refuse(*_):
        tries.append(bool(cache._outputs))
        if cache._outputs:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    with lm.forward.use_layer_cache(cache):
        lm.score(make_prompts(shared=False, count=1))
        lm.forward.body.layers[1].register_forward_pre_hook(refuse)
        lm.score(make_prompts(shared=True))
    assert tries[:2] == [True, False]


def test_a_prefix_kept_for_later_is_given_back_first(short_of_memory):
    lm, prompts = short_of_memory, make_prompts(shared=False, count=1)
    lm.score(make_prompts(shared=True))
    assert lm._last_prefix is not None
    body = lm.forward.body.layers[1]
    refused = []

    def refuse(_, given):
        if lm._last_prefix is not None:
            refused.append(True)
            raise torch.OutOfMemoryError("CUDA out of memory.")

    body.register_forward_pre_hook(refuse)
    assert len(lm.score(prompts)) == 1
    assert refused == [True]


def test_other_errors_pass(short_of_memory):
    def broken(*_):
        raise RuntimeError("shapes differ")

    short_of_memory.forward.body.layers[1].register_forward_pre_hook(broken)
    with pytest.raises(RuntimeError, match="shapes differ"):
        short_of_memory.score(make_prompts(shared=True))
