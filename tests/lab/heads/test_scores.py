"""Scores of heads: their file, the top heads, random heads to compare with, and the map."""

import json
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import ConfigError, ModelError, StorageError
from zicl.lab.heads.scores import HeadScores, draw_head_map, plot_head_map, random_like
from zicl.lm.heads import Head


def some_scores(rows, **more):
    return HeadScores(model="m", identity="i", task="t", prompts=3, scores=rows, **more)


def test_the_top_heads_and_ties():
    scores = some_scores([[0.1, 0.5], [0.5, -1], [0.7, 0.1]])
    assert scores.top(4) == (Head(2, 0), Head(0, 1), Head(1, 0), Head(0, 0))
    assert scores.top(0) == ()
    assert scores.values.shape == (3, 2)
    with pytest.raises(ConfigError, match="7 heads were requested"):
        scores.top(7)


rows = st.integers(1, 4).flatmap(
    lambda heads: st.lists(
        st.lists(st.floats(-1, 1), min_size=heads, max_size=heads).map(tuple), min_size=1, max_size=5
    )
)


@given(rows)
def test_top_is_sorted_and_complete(given_):
    scores = some_scores(given_)
    order = scores.top(scores.values.size)
    assert len(set(order)) == scores.values.size
    values = [scores[head] for head in order]
    assert values == sorted(values, reverse=True)


@given(given_=rows)
def test_a_file_keeps_every_digit(given_, tmp_path_factory):
    path = tmp_path_factory.mktemp("scores") / "heads.json"
    scores = some_scores(given_)
    scores.write(path)
    assert HeadScores.read(path) == scores


def test_scores_belong_to_one_model(lm):
    scores = some_scores([[0.0]]).model_copy(update={"identity": lm.identity})
    scores.check(lm)
    with pytest.raises(ModelError, match="the heads of m, and tiny-llama is not the same"):
        some_scores([[0.0]]).check(lm)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[0.0, 1.0], [0.0]]}, "same number of heads"),
        ({"scores": [[float("nan")]]}, "finite"),
        ({"scores": []}, "at least 1"),
        ({"more": 1}, "more: Extra"),
        ({"identity": None}, "identity"),
    ],
)
def test_invalid_files(tmp_path, change, message):
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
def test_random_heads_are_other_heads_of_the_same_layers(drawn, draws, seed):
    found, shape = drawn
    made = random_like(found, shape, draws=draws, seed=seed)
    assert len(made) == draws
    assert made == random_like(found, shape, draws=draws, seed=seed)
    # Further draws do not change the first.
    assert random_like(found, shape, draws=draws + 1, seed=seed)[:draws] == made
    per_layer = Counter(head.layer for head in found)
    for heads in made:
        assert len(set(heads)) == len(heads) == len(found)
        assert not set(heads) & set(found)
        assert all(0 <= head.layer < shape[0] and 0 <= head.head < shape[1] for head in heads)
        if all(2 * count <= shape[1] for count in per_layer.values()):
            assert Counter(head.layer for head in heads) == per_layer


def test_random_heads_differ_between_draws_and_cover_the_layer():
    draws = random_like([Head(1, 0)], (3, 5), draws=60)
    assert {heads[0] for heads in draws} == {Head(1, number) for number in (1, 2, 3, 4)}


def test_a_full_layer_is_replaced_by_the_nearest():
    found = [Head(2, 0), Head(2, 1), Head(2, 2)]
    for heads in random_like(found, (4, 3), draws=5):
        assert [head.layer for head in heads] == [1, 1, 1]


def test_impossible_random_heads():
    with pytest.raises(ConfigError, match="too few other heads"):
        random_like([Head(0, 0), Head(0, 1)], (1, 3), draws=1)
    with pytest.raises(ConfigError, match=r"no head 1\.0"):
        random_like([Head(1, 0)], (1, 3), draws=1)


@pytest.fixture
def scores():
    values = np.random.default_rng(1).normal(0, 0.02, (12, 9))
    values[7, 3], values[9, 1] = 0.4, 0.1
    rows = tuple(tuple(row) for row in values.tolist())
    return HeadScores(model="smollm2-135m", identity="i", task="CR", prompts=100, scores=rows)


def test_the_map_has_two_formats_and_the_same_bytes_each_time(scores, tmp_path):
    written = draw_head_map(scores, tmp_path / "new" / "heads-1.7b")
    assert [path.name for path in written] == ["heads-1.7b.svg", "heads-1.7b.png"]
    again = draw_head_map(scores, tmp_path / "again" / "heads-1.7b")
    for one, other in zip(written, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert ET.parse(written[0]).getroot().tag.endswith("svg")
    assert written[1].read_bytes().startswith(b"\x89PNG")


def test_the_map_shows_the_ranks_of_the_top_heads(scores):
    figure = plot_head_map(scores, top=3)
    panel = figure.axes[0]
    ranks = {text.get_text(): text.get_position() for text in panel.texts}
    assert (ranks["1"], ranks["2"]) == ((7, 3), (9, 1))
    assert len(ranks) == 3
    (image,) = panel.images
    assert image.get_array().shape == (9, 12)
    assert "smollm2-135m, 100 prompts of CR" in figure.get_suptitle()


def test_higher_scores_are_darker(scores):
    (image,) = plot_head_map(scores).axes[0].images
    shades = [float(np.mean(image.cmap(image.norm(value))[:3])) for value in (-0.1, 0, 0.1, 0.2, 0.4)]
    assert shades[0] == shades[1]
    assert shades[1:] == sorted(shades[1:], reverse=True)
    assert len(set(shades)) == 4


def test_a_map_of_zeros(tmp_path):
    flat = HeadScores(model="m", identity="i", task="", prompts=1, scores=((0.0, 0.0),))
    assert len(draw_head_map(flat, tmp_path / "flat")) == 2
