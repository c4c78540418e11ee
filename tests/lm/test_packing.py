"""The packed tree equals a plain full forward pass, whatever the family, batch size or cache."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import tiny_lm
from zicl.exceptions import PromptError
from zicl.lm.packing import ROOT, pack
from zicl.prompt.builder import Branch, Prompt
from zicl.prompt.tokens import EMPTY, Segment

FAMILIES = ["gpt2", "neox", "gptj", "llama", "gemma3"]
MODELS = {}


def model(family):
    if family not in MODELS:
        MODELS[family] = tiny_lm(family)
    return MODELS[family]


def seg(tokens):
    return Segment("", tuple(tokens))


token = st.integers(2, 399)
line = st.lists(token, min_size=1, max_size=6)
branches = st.lists(st.tuples(st.lists(token, max_size=4), line), min_size=1, max_size=4)


@st.composite
def prompts(draw, longest=120):
    """Some prompts, often with a prefix in common, with branches that share tokens and some that do not."""
    prefix = draw(st.lists(token, min_size=1, max_size=longest))
    result = []
    for _ in range(draw(st.integers(1, 4))):
        own = prefix if draw(st.booleans()) else draw(st.lists(token, min_size=1, max_size=longest))
        stem = draw(st.lists(token, max_size=8))
        tree = tuple(Branch(seg(given_), seg(scored)) for given_, scored in draw(branches))
        result.append(Prompt(seg(own), seg(stem), tree))
    return result


def check(lm, asked, tolerance=1e-4):
    found = lm.score(asked)
    with torch.inference_mode():
        expected = [lm.forward.plain(prompt) for prompt in asked]
    for mine, plain in zip(found, expected, strict=True):
        for a, b in zip(mine, plain, strict=True):
            assert a.dtype == np.float32
            assert a.shape == b.shape
            assert np.abs(a - b).max() < tolerance


@pytest.mark.parametrize("family", FAMILIES)
@given(asked=prompts())
def test_tree_equals_plain_forward(family, asked):
    check(model(family), asked)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("batch_size", range(1, 9))
def test_batch_size_changes_nothing(family, batch_size):
    lm, draw = model(family), np.random.default_rng(batch_size)
    asked = []
    for number in range(9):
        # Prefixes of 3 to 123 tokens: shorter and longer than Gemma's window of 16, and than the chain kernel needs.
        prefix = draw.integers(2, 400, 3 + 15 * number)
        tree = tuple(Branch(EMPTY, seg(draw.integers(2, 400, 3))) for _ in range(3))
        asked.append(Prompt(seg(prefix), seg(draw.integers(2, 400, 4)), tree))
    before, lm.batch_size = lm.batch_size, batch_size
    try:
        check(lm, asked)
    finally:
        lm.batch_size = before


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("chain", "tail"), [(150, 70), (70, 30), (20, 70), (64, 60), (300, 50)])
@pytest.mark.parametrize("together", [True, False])
def test_long_branches_see_the_trunk_and_their_own(family, chain, tail, together):
    """Long enough for attention run by run; branches fork twice, as the labels of a channel prompt do."""
    lm, draw = model(family), np.random.default_rng(chain + tail)
    prefix, joint = seg(draw.integers(2, 400, chain)), draw.integers(2, 400, 3).tolist()
    asked = []
    for _ in range(3 if together else 1):
        scored = seg(draw.integers(2, 400, tail))
        tree = tuple(Branch(seg([*joint, label]), scored) for label in (5, 6, 7))
        asked.append(Prompt(prefix, EMPTY, tree))
    check(lm, asked)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("together", [True, False])
def test_many_labels_go_through_one_trie(family, together):
    lm, draw = model(family), np.random.default_rng(8)
    prefix, joint = seg(draw.integers(2, 400, 100)), draw.integers(2, 400, 2).tolist()
    labels = [[*joint, *draw.integers(2, 40, length).tolist()] for length in (1, 2, 3, 4) * 20]
    tree = tuple(Branch(EMPTY, seg(label)) for label in labels)
    asked = [Prompt(prefix, seg(draw.integers(2, 400, 9)), tree) for _ in range(3 if together else 1)]
    check(lm, asked)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_shared_prefix_is_computed_once_and_scores_the_same(family, monkeypatch):
    lm, draw = model(family), np.random.default_rng(1)
    prefix = seg(draw.integers(2, 400, 90))
    asked = [
        Prompt(
            prefix,
            seg(draw.integers(2, 400, 5)),
            tuple(Branch(EMPTY, seg(draw.integers(2, 400, n))) for n in (1, 2, 4)),
        )
        for _ in range(20)
    ]
    calls, original = [], lm.forward.prefix
    monkeypatch.setattr(lm.forward, "prefix", lambda tokens: calls.append(len(tokens)) or original(tokens))
    check(lm, asked)
    assert calls == [90]


def test_models_that_cannot_read_trees_are_scored_the_plain_way():
    lm = model("bloom")
    assert not lm.supports_trees
    draw = np.random.default_rng(2)
    check(
        lm,
        [Prompt(seg(draw.integers(2, 400, 9)), EMPTY, (Branch(EMPTY, seg([5, 6])), Branch(EMPTY, seg([7]))))],
    )


def test_a_window_counted_in_a_models_own_way_is_noticed():
    """GPT-Neo's local layers count their window in places of the sequence: its packed trees would be wrong."""
    import transformers as hf

    from tests.conftest import byte_tokenizer
    from zicl.lm.hf import HFLanguageModel

    torch.manual_seed(5)
    config = hf.GPTNeoConfig(
        vocab_size=400, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=64, window_size=16,
        attention_types=[[["global", "local"], 1]], max_position_embeddings=512,
    )  # fmt: skip
    model = hf.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(6)
    lm = HFLanguageModel(model, byte_tokenizer(), name="neo", identity="neo")
    draw = np.random.default_rng(3)
    check(
        lm,
        [
            Prompt(
                seg(draw.integers(2, 400, 40)),
                EMPTY,
                tuple(Branch(EMPTY, seg(draw.integers(2, 400, 12))) for _ in range(3)),
            )
        ],
    )


def test_shared_tokens_are_fed_once_and_last_tokens_not_at_all():
    tree = pack(
        [Prompt(seg([10, 11]), seg([12]), (Branch(EMPTY, seg([20, 21, 22])), Branch(EMPTY, seg([20, 21, 23]))))]
    )
    assert tree.tokens.tolist() == [10, 11, 12, 20, 21]
    assert tree.places == (((2, 3, 4), (2, 3, 4)),)
    assert tree.positions.tolist() == [0, 1, 2, 3, 4]


def test_a_token_sees_its_ancestors_only():
    tree = pack([Prompt(seg([10]), EMPTY, (Branch(seg([20]), seg([30, 31])), Branch(seg([21]), seg([30, 31]))))])
    assert tree.tokens.tolist() == [10, 20, 30, 21, 30]
    assert tree.visible().astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [1, 0, 0, 1, 1],
    ]


def test_behind_a_computed_prefix_the_first_scored_token_hangs_on_the_root():
    tree = pack(
        [Prompt(seg([10, 11]), EMPTY, (Branch(EMPTY, seg([20])), Branch(EMPTY, seg([21]))))],
        prefix_computed=True,
    )
    assert len(tree) == 0
    assert tree.places == (((ROOT,), (ROOT,)),)


def test_nothing_before_the_first_scored_token_is_an_error_not_a_zero():
    with pytest.raises(PromptError, match="no token before its first scored one"):
        pack([Prompt(EMPTY, EMPTY, (Branch(EMPTY, seg([20, 21])),))])
    with pytest.raises(PromptError, match="nothing to score"):
        pack([Prompt(seg([1]), EMPTY, (Branch(seg([20]), EMPTY),))])


def test_the_trunk_ends_at_the_first_fork():
    tree = pack([Prompt(seg([10, 11]), EMPTY, (Branch(seg([20]), seg([30, 31])), Branch(seg([21]), seg([30, 31]))))])
    assert tree.tokens.tolist() == [10, 11, 20, 30, 21, 30]
    assert tree.trunk == 2
    assert list(tree.runs(tree.trunk)) == [(2, 4, ()), (4, 6, ())]
