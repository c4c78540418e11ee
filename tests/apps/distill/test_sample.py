"""Drawing the rows the language model is asked about."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zicl.apps.distill import train as sample
from zicl.apps.distill.run import split
from zicl.apps.distill.train import allocate_rows, diverse_sample


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.data())
def test_every_group_is_drawn_from_and_none_beyond_its_size(sizes, data):
    sizes = np.array(sizes)
    count = data.draw(st.integers(len(sizes), int(sizes.sum())))
    drawn = allocate_rows(sizes, count)
    assert drawn.sum() == count
    assert (drawn >= 1).all()
    assert (drawn <= sizes).all()
    # In proportion: of what is left after one each, no group gets a whole row more or less than its part.
    part = (sizes - 1) * (count - len(sizes)) / max(1, int((sizes - 1).sum()))
    assert (np.abs(drawn - 1 - part) < 1).all()


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 3))
def test_samples_are_distinct_rows_as_many_as_asked_for_and_the_same_again(rows, count, seed):
    vectors = unit(np.random.default_rng(rows).normal(size=(rows, 4)))
    drawn = diverse_sample(vectors, count, seed)
    assert len(drawn) == min(rows, count)
    assert len(set(drawn.tolist())) == len(drawn)
    assert drawn.tolist() == sorted(drawn.tolist())
    assert set(drawn.tolist()) <= set(range(rows))
    assert drawn.tolist() == diverse_sample(vectors, count, seed).tolist()


def test_a_rare_kind_of_text_is_not_missed():
    noise = np.random.default_rng(0).normal(scale=0.01, size=(1000, 3))
    vectors = np.tile([1.0, 0.0, 0.0], (1000, 1))
    vectors[100:103] = [0.0, 1.0, 0.0]
    for seed in range(5):
        assert set(diverse_sample(unit(vectors + noise), 24, seed).tolist()) & {100, 101, 102}


def test_the_seed_decides():
    vectors = unit(np.random.default_rng(0).normal(size=(200, 8)))
    assert len({tuple(diverse_sample(vectors, 16, seed).tolist()) for seed in range(4)}) == 4


def test_equal_vectors_are_no_trouble():
    assert len(diverse_sample(np.tile(np.float32([1, 0]), (50, 1)), 32, 0)) == 32


def test_many_rows_join_the_clusters_that_some_of_them_form(monkeypatch):
    monkeypatch.setattr(sample, "_LEARN", 50)
    monkeypatch.setattr(sample, "_PIECE", 7)
    vectors = unit(np.random.default_rng(0).normal(size=(200, 8)))
    assert len(diverse_sample(vectors, 40, 0)) == 40


@given(st.integers(5, 300), st.floats(0.01, 0.9), st.integers(0, 5))
def test_every_row_is_learned_from_or_compared_on(count, share, seed):
    learned, held = split(count, share, seed)
    assert sorted([*learned, *held]) == list(range(count))
    assert len(learned) >= 2
    assert len(held) >= 1
