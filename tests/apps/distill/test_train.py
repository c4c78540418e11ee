"""Learning from probabilities, and saying how well that went."""

import numpy as np
import pytest

from zicl.apps.distill.agreement import Agreement, measure_agreement
from zicl.apps.distill.train import STRENGTHS, fit_linear, loss, train
from zicl.score.calibration import log_softmax


def teacher(labels, rows=1500, dimension=6, seed=0):
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(rows, dimension))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    weights, offsets = generator.normal(scale=3, size=(labels, dimension)), generator.normal(size=labels)
    return vectors, np.exp(log_softmax(vectors @ weights.T + offsets)), weights, offsets


@pytest.mark.parametrize("labels", [2, 4])
def test_a_linear_teacher_is_recovered(labels):
    vectors, shares, weights, offsets = teacher(labels)
    trained = train(vectors[:1200], shares[:1200], 0)
    assert trained.strength == STRENGTHS[-1]
    # Only differences between labels count: a constant added to all changes no probability.
    found = trained.linear.weights - trained.linear.weights.mean(axis=0)
    assert found == pytest.approx(weights - weights.mean(axis=0), abs=0.15)
    assert trained.linear.offsets - trained.linear.offsets.mean() == pytest.approx(offsets - offsets.mean(), abs=0.1)
    shares_found = np.exp(log_softmax(trained.linear.scores(vectors[1200:])))
    assert shares_found == pytest.approx(shares[1200:], abs=0.02)


def test_c_is_the_one_of_the_lowest_cross_validated_loss_and_noise_wants_a_small_one():
    vectors = teacher(3, rows=60)[0]
    noise = np.random.default_rng(1).dirichlet([0.3] * 3, size=60)
    trained = train(vectors, noise, 0)
    losses = dict(trained.losses)
    assert losses[trained.strength] == min(losses.values())
    assert trained.strength < train(*teacher(3)[:2], 0).strength
    assert train(vectors, noise, 0).losses == trained.losses


def test_soft_labels_say_more_than_hard_ones():
    vectors, shares, *_ = teacher(3, rows=400)
    hard = np.eye(3)[shares.argmax(axis=1)]
    soft = fit_linear(vectors[:60], shares[:60], 10.0)
    firm = fit_linear(vectors[:60], hard[:60], 10.0)
    held = slice(60, None)
    assert loss(shares[held], soft.scores(vectors[held])).mean() < loss(shares[held], firm.scores(vectors[held])).mean()


def test_a_label_nobody_gets_is_given_to_nobody():
    vectors, shares, *_ = teacher(3, rows=80)
    shares[:, 1] = 0
    shares /= shares.sum(axis=1, keepdims=True)
    scores = train(vectors, shares, 0).linear.scores(vectors)
    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=1) != 1).all()


def test_agreement_counts_equal_labels_and_what_the_most_frequent_would_give():
    shares = np.array([[0.9, 0.1, 0], [0.8, 0.2, 0], [0.6, 0.4, 0], [0.1, 0.9, 0]])
    scores = np.log([[0.9, 0.05, 0.05], [0.3, 0.6, 0.1], [0.5, 0.4, 0.1], [0.1, 0.8, 0.1]])
    found = measure_agreement(["a", "b", "c"], shares, scores)
    assert (found.rows, found.value, found.most, found.majority) == (4, 0.75, "a", 0.75)
    assert found.low < 0.75 < found.high
    assert [(x.rows, x.given, x.agreement) for x in found.labels] == [(3, 2, 2 / 3), (1, 2, 1.0), (0, 0, None)]
    assert found.labels[2].divergence is None
    assert found.divergence > 0
    assert found.log_loss == pytest.approx(-(shares * scores).sum(axis=1).mean())
    same = measure_agreement(["a", "b", "c"], shares, np.log(shares + 1e-12))
    assert same.value == 1
    assert same.divergence == pytest.approx(0, abs=1e-9)


def test_agreement_is_plain_values():
    from dataclasses import asdict

    found = measure_agreement(["a", "b"], np.array([[0.9, 0.1]]), np.zeros((1, 2)))
    assert Agreement.of(asdict(found)) == found
