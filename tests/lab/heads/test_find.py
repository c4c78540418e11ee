"""Scores of heads: their mean over prompts, their file, and the random heads they are compared with."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import ConfigError, ModelError, StorageError
from zicl.lab.heads.find import MarkedPrompt, find_heads, random_like
from zicl.lab.heads.scores import HeadScores
from zicl.lm.heads import Head, last_token_attention


def some_scores(rows, **more):
    return HeadScores(model="m", identity="i", task="t", prompts=3, scores=rows, **more)


@pytest.fixture
def prompts():
    draw = np.random.default_rng(2)
    tokens = [tuple(draw.integers(2, 400, n).tolist()) for n in (30, 50, 90)]
    return [
        MarkedPrompt(each, (4, 9, 20), ("a", "b", "c"), answer, 3) for each, answer in zip(tokens, "aba", strict=True)
    ]


def test_the_score_is_the_mean_over_prompts_of_attention_for_less_attention_against(lm, prompts):
    seen = []
    found = find_heads(lm, prompts, task="toy", progress=seen.append)
    assert seen == [1, 1, 1]
    assert (found.model, found.identity, found.task, found.prompts) == (lm.name, lm.identity, "toy", 3)
    for layer, head in [(0, 0), (2, 3)]:
        each = []
        for prompt in prompts:
            row = last_token_attention(lm, prompt.tokens)[layer, head].astype(float)
            weight = {key: row[key] for key in prompt.keys}
            same = {"a": 4, "b": 9}[prompt.answer]
            each.append(weight.pop(same) - sum(weight.values()) / 2)
        assert found[Head(layer, head)] == pytest.approx(np.mean(each), abs=1e-9)
    # No prompt's score depends on the others or on their order.
    alone = [find_heads(lm, [prompt]).values for prompt in prompts]
    assert np.abs(np.mean(alone, axis=0) - found.values).max() < 1e-12
    assert np.abs(find_heads(lm, prompts[::-1]).values - found.values).max() < 1e-12


def test_no_prompts(lm):
    with pytest.raises(ConfigError, match="no prompts"):
        find_heads(lm, [])


def test_the_top_heads_and_ties():
    scores = some_scores([[0.1, 0.5], [0.5, -1], [0.7, 0.1]])
    assert scores.top(4) == (Head(2, 0), Head(0, 1), Head(1, 0), Head(0, 0))
    assert scores.top(0) == ()
    assert scores.values.shape == (3, 2)
    with pytest.raises(ConfigError, match="7 heads were asked for"):
        scores.top(7)


rows = st.integers(1, 4).flatmap(
    lambda heads: st.lists(
        st.lists(st.floats(-1, 1), min_size=heads, max_size=heads).map(tuple), min_size=1, max_size=5
    )
)


@given(rows)
def test_top_is_sorted_and_whole(given_):
    scores = some_scores(given_)
    order = scores.top(scores.values.size)
    assert len(set(order)) == scores.values.size
    values = [scores[head] for head in order]
    assert values == sorted(values, reverse=True)


@given(given_=rows)
def test_a_file_gives_back_every_digit(given_, tmp_path_factory):
    path = tmp_path_factory.mktemp("scores") / "heads.json"
    scores = some_scores(given_)
    scores.write(path)
    assert HeadScores.read(path) == scores


def test_scores_belong_to_one_model(lm):
    own = some_scores([[0.0]]).model_copy(update={"identity": lm.identity})
    own.check(lm)
    with pytest.raises(ModelError, match="the heads of m, not of tiny-llama"):
        some_scores([[0.0]]).check(lm)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[0.0, 1.0], [0.0]]}, "as many heads"),
        ({"scores": [[float("nan")]]}, "finite"),
        ({"scores": []}, "at least 1"),
        ({"more": 1}, "more: Extra"),
        ({"identity": None}, "identity"),
    ],
)
def test_a_file_that_is_something_else(tmp_path, change, message):
    path = tmp_path / "heads.json"
    path.write_text(json.dumps({**some_scores([[0.0]]).model_dump(), **change}))
    with pytest.raises(StorageError, match=message):
        HeadScores.read(path)
    with pytest.raises(StorageError, match="no file"):
        HeadScores.read(tmp_path / "none.json")


@st.composite
def found_heads(draw):
    layers, heads = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    every = st.builds(Head, st.integers(0, layers - 1), st.integers(0, heads - 1))
    return draw(st.lists(every, unique=True, max_size=layers * heads // 2)), (layers, heads)


@given(found_heads(), st.integers(0, 4), st.integers(0, 99))
def test_random_heads_are_others_of_the_same_layers(drawn, draws, seed):
    found, shape = drawn
    made = random_like(found, shape, draws=draws, seed=seed)
    assert len(made) == draws
    assert made == random_like(found, shape, draws=draws, seed=seed)
    # A further draw leaves the first ones as they are.
    assert random_like(found, shape, draws=draws + 1, seed=seed)[:draws] == made
    per_layer = Counter(head.layer for head in found)
    for heads in made:
        assert len(set(heads)) == len(heads) == len(found)
        assert not set(heads) & set(found)
        assert all(0 <= head.layer < shape[0] and 0 <= head.head < shape[1] for head in heads)
        if all(2 * count <= shape[1] for count in per_layer.values()):
            assert Counter(head.layer for head in heads) == per_layer


def test_random_heads_differ_from_draw_to_draw_and_fall_on_all():
    draws = random_like([Head(1, 0)], (3, 5), draws=60)
    assert {heads[0] for heads in draws} == {Head(1, number) for number in (1, 2, 3, 4)}


def test_a_layer_that_is_full_is_replaced_by_the_nearest():
    found = [Head(2, 0), Head(2, 1), Head(2, 2)]
    for heads in random_like(found, (4, 3), draws=5):
        assert [head.layer for head in heads] == [1, 1, 1]


def test_random_heads_that_cannot_be_drawn():
    with pytest.raises(ConfigError, match="too few others"):
        random_like([Head(0, 0), Head(0, 1)], (1, 3), draws=1)
    with pytest.raises(ConfigError, match=r"no head 1\.0"):
        random_like([Head(1, 0)], (1, 3), draws=1)
