"""Two dimensions: similar vectors are neighbours, a seed decides, and what is far from everything is found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.apps.map.layout import choose_layout, find_outlying, lay_out


def groups(count, seed=0):
    """Unit vectors around three corners."""
    generator = np.random.default_rng(seed)
    corners = np.eye(3, 16)[np.arange(count) % 3]
    vectors = (corners + generator.normal(scale=0.08, size=corners.shape)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("layout", ["pca", "tsne"])
def test_neighbours_stay_neighbours(layout):
    vectors = groups(90)
    points = lay_out(vectors, layout)
    assert points.shape == (90, 2)
    assert np.abs(points).max() == pytest.approx(1)
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (distances.argmin(axis=1) % 3 == np.arange(90) % 3).mean() > 0.95
    assert lay_out(vectors, layout) == pytest.approx(points, abs=1e-4)


def test_few_texts_and_those_without_the_extra_are_drawn_by_pca(monkeypatch):
    assert choose_layout("auto", 5) == "pca"
    assert choose_layout("auto", 500) == "tsne"
    assert [choose_layout("tsne", count) for count in (2, 3)] == ["pca", "tsne"]
    assert lay_out(groups(3), "tsne").shape == (3, 2)
    monkeypatch.setattr("zicl.apps.map.layout.find_spec", lambda name: None)
    assert choose_layout("auto", 500) == "pca"


@given(st.integers(3, 40), st.integers(0, 5))
def test_equal_texts_and_any_number_are_laid_out(count, seed):
    points = lay_out(np.repeat(groups(3, seed), count, axis=0)[:count], "pca")
    assert np.isfinite(points).all()


def test_differences_of_rounding_are_not_drawn():
    vectors = np.repeat(groups(1), 30, axis=0)
    vectors += np.random.default_rng(0).normal(scale=1e-8, size=vectors.shape).astype(np.float32)
    assert np.abs(lay_out(vectors, "pca")).max() < 0.01


@pytest.mark.parametrize("count", [15, 20, 40, 120])
def test_a_few_texts_do_not_come_together_in_one_point(count):
    vectors = np.random.default_rng(0).normal(size=(count, 8)) + 3
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    points = lay_out(vectors, "tsne")
    assert len(np.unique(points.round(3), axis=0)) > count / 2


def test_what_is_far_from_everything_is_outlying():
    vectors = groups(60)
    vectors[7] = np.eye(16, dtype=np.float32)[9]
    assert find_outlying(vectors).tolist() == [number == 7 for number in range(60)]
    assert not find_outlying(vectors[:1]).any()
