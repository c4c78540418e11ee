"""The map of heads: every head a square, the top ones numbered, and the same file for the same numbers."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from zicl.lab.heads.scores import HeadScores, draw_head_map, make_map


@pytest.fixture
def scores():
    values = np.random.default_rng(1).normal(0, 0.02, (12, 9))
    values[7, 3], values[9, 1] = 0.4, 0.1
    rows = tuple(tuple(row) for row in values.tolist())
    return HeadScores(model="smollm2-135m", identity="i", task="CR", prompts=100, scores=rows)


def test_both_formats_and_the_same_to_the_byte(scores, tmp_path):
    written = draw_head_map(scores, tmp_path / "new" / "heads-1.7b")
    assert [path.name for path in written] == ["heads-1.7b.svg", "heads-1.7b.png"]
    again = draw_head_map(scores, tmp_path / "again" / "heads-1.7b")
    for one, other in zip(written, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert ET.parse(written[0]).getroot().tag.endswith("svg")
    assert written[1].read_bytes().startswith(b"\x89PNG")


def test_the_top_heads_carry_their_rank(scores):
    figure = make_map(scores, top=3)
    panel = figure.axes[0]
    ranks = {text.get_text(): text.get_position() for text in panel.texts}
    assert (ranks["1"], ranks["2"]) == ((7, 3), (9, 1))
    assert len(ranks) == 3
    (image,) = panel.images
    assert image.get_array().shape == (9, 12)
    assert "smollm2-135m, 100 prompts of CR" in figure.get_suptitle()


def test_greys_grow_darker_with_the_score(scores):
    (image,) = make_map(scores).axes[0].images
    shades = [float(np.mean(image.cmap(image.norm(value))[:3])) for value in (-0.1, 0, 0.1, 0.2, 0.4)]
    assert shades[0] == shades[1]
    assert shades[1:] == sorted(shades[1:], reverse=True)
    assert len(set(shades)) == 4


def test_a_model_in_which_no_head_looks(tmp_path):
    flat = HeadScores(model="m", identity="i", task="", prompts=1, scores=((0.0, 0.0),))
    assert len(draw_head_map(flat, tmp_path / "flat")) == 2
