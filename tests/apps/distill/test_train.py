"""Choosing rows, and fitting to probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.apps.distill import train as module
from zicl.apps.distill.train import STRENGTHS, allocate_rows, cross_entropy, diverse_sample, fit_linear, train
from zicl.score.calibration import log_softmax


def teacher(labels, rows=1500, dimension=6, seed=0):
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(rows, dimension))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    weights, offsets = generator.normal(scale=3, size=(labels, dimension)), generator.normal(size=labels)
    return vectors, np.exp(log_softmax(vectors @ weights.T + offsets)), weights, offsets


@pytest.mark.parametrize("labels", [2, 4])
def test_a_linear_teacher_is_recovered(labels):
    vectors, probabilities, weights, offsets = teacher(labels)
    trained = train(vectors[:1200], probabilities[:1200], 0)
    assert trained.strength == STRENGTHS[-1]
    # Only differences between labels count: a constant added to all changes no probability.
    found = trained.linear.weights - trained.linear.weights.mean(axis=0)
    assert found == pytest.approx(weights - weights.mean(axis=0), abs=0.15)
    assert trained.linear.offsets - trained.linear.offsets.mean() == pytest.approx(offsets - offsets.mean(), abs=0.1)
    probabilities_found = np.exp(log_softmax(trained.linear.scores(vectors[1200:])))
    assert probabilities_found == pytest.approx(probabilities[1200:], abs=0.02)


def test_c_has_the_lowest_cross_validated_loss_and_noise_needs_a_small_one():
    vectors = teacher(3, rows=60)[0]
    noise = np.random.default_rng(1).dirichlet([0.3] * 3, size=60)
    trained = train(vectors, noise, 0)
    losses = dict(trained.losses)
    assert losses[trained.strength] == min(losses.values())
    assert trained.strength < train(*teacher(3)[:2], 0).strength
    assert train(vectors, noise, 0).losses == trained.losses


def test_soft_labels_train_better_than_hard_ones():
    vectors, probabilities, *_ = teacher(3, rows=400)
    hard = np.eye(3)[probabilities.argmax(axis=1)]
    soft = fit_linear(vectors[:60], probabilities[:60], 10.0)
    firm = fit_linear(vectors[:60], hard[:60], 10.0)
    held = slice(60, None)
    losses = [cross_entropy(probabilities[held], fitted.scores(vectors[held])).mean() for fitted in (soft, firm)]
    assert losses[0] < losses[1]


def test_a_label_without_probability_is_never_predicted():
    vectors, probabilities, *_ = teacher(3, rows=80)
    probabilities[:, 1] = 0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    scores = train(vectors, probabilities, 0).linear.scores(vectors)
    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=1) != 1).all()


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.data())
def test_every_group_is_drawn_from_and_none_beyond_its_size(sizes, data):
    sizes = np.array(sizes)
    count = data.draw(st.integers(len(sizes), int(sizes.sum())))
    drawn = allocate_rows(sizes, count)
    assert drawn.sum() == count
    assert (drawn >= 1).all()
    assert (drawn <= sizes).all()
    # After one each, the rest is in proportion: no group is a full row above or below its part.
    part = (sizes - 1) * (count - len(sizes)) / max(1, int((sizes - 1).sum()))
    assert (np.abs(drawn - 1 - part) < 1).all()


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 3))
def test_samples_are_distinct_sorted_and_repeatable(rows, count, seed):
    vectors = unit(np.random.default_rng(rows).normal(size=(rows, 4)))
    drawn = diverse_sample(vectors, count, seed)
    assert len(drawn) == min(rows, count)
    assert len(set(drawn.tolist())) == len(drawn)
    assert drawn.tolist() == sorted(drawn.tolist())
    assert set(drawn.tolist()) <= set(range(rows))
    assert drawn.tolist() == diverse_sample(vectors, count, seed).tolist()


def test_rare_texts_are_sampled():
    noise = np.random.default_rng(0).normal(scale=0.01, size=(1000, 3))
    vectors = np.tile([1.0, 0.0, 0.0], (1000, 1))
    vectors[100:103] = [0.0, 1.0, 0.0]
    for seed in range(5):
        assert set(diverse_sample(unit(vectors + noise), 24, seed).tolist()) & {100, 101, 102}


def test_the_seed_decides():
    vectors = unit(np.random.default_rng(0).normal(size=(200, 8)))
    assert len({tuple(diverse_sample(vectors, 16, seed).tolist()) for seed in range(4)}) == 4


def test_equal_vectors_are_sampled():
    assert len(diverse_sample(np.tile(np.float32([1, 0]), (50, 1)), 32, 0)) == 32


def test_many_rows_are_assigned_to_clusters_fitted_on_some(monkeypatch):
    monkeypatch.setattr(module, "_CLUSTER_FIT_ROWS", 50)
    monkeypatch.setattr(module, "_CHUNK", 7)
    vectors = unit(np.random.default_rng(0).normal(size=(200, 8)))
    assert len(diverse_sample(vectors, 40, 0)) == 40
