"""The model of a pile: labels cannot swap, gold labels hold, and a pile that says nothing does not count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.score.calibration import log_softmax
from zicl.score.pile import ANCHOR, SHARPNESS, PileModel, fit_pile


def clusters(labels=3, per_label=40, *, spread=0.6, seed=0):
    """Unit vectors around a centre per label, experts that are right more often than not, and the truth."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(labels, 24))
    truth = np.repeat(np.arange(labels), per_label)
    vectors = centres[truth] + spread * generator.normal(size=(len(truth), 24))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    experts = generator.normal(size=(len(truth), labels)) + 1.2 * np.eye(labels)[truth]
    return vectors.astype(np.float32), experts, truth


def accuracy(scores, truth):
    return float((scores.argmax(axis=1) == truth).mean())


def test_the_pile_corrects_the_experts_where_texts_of_a_label_are_alike():
    vectors, experts, truth = clusters()
    model = fit_pile(vectors, experts)
    assert model.weight == 1
    assert accuracy(model.join(experts, vectors), truth) > accuracy(experts, truth) + 0.1
    assert model.shares == pytest.approx([1 / 3] * 3, abs=0.06)


@given(order=st.permutations(range(3)), seed=st.integers(0, 5))
def test_permuted_labels_give_permuted_answers(order, seed):
    vectors, experts, _ = clusters(seed=seed)
    plain, permuted = fit_pile(vectors, experts), fit_pile(vectors, experts[:, order])
    expected = plain.join(experts, vectors)[:, order]
    np.testing.assert_allclose(permuted.join(experts[:, order], vectors), expected, atol=1e-6)
    assert permuted.shares == pytest.approx(np.array(plain.shares)[order].tolist())


def test_a_duplicated_pile_gives_the_same_model():
    vectors, experts, _ = clusters()
    once = fit_pile(vectors, experts)
    twice = fit_pile(np.concatenate([vectors] * 2), np.concatenate([experts] * 2))
    np.testing.assert_allclose(
        log_softmax(twice.linear.scores(vectors)), log_softmax(once.linear.scores(vectors)), atol=1e-6
    )


def test_no_answer_depends_on_other_texts():
    vectors, experts, _ = clusters()
    model = fit_pile(vectors, experts)
    together = model.join(experts, vectors)
    for n in (0, 50, 119):
        np.testing.assert_allclose(model.join(experts[n : n + 1], vectors[n : n + 1])[0], together[n], atol=1e-9)


def test_gold_labels_hold_against_experts_that_are_wrong():
    vectors, experts, truth = clusters(labels=2, per_label=60)
    # The experts take each label for the other.
    wrong = experts[:, ::-1]
    gold = np.where(np.arange(len(truth)) % 2 == 0, truth, -1)
    taught = fit_pile(vectors, wrong, gold=gold)
    assert accuracy(taught.linear.scores(vectors), truth) > 0.95
    assert accuracy(fit_pile(vectors, wrong).linear.scores(vectors), truth) < 0.2


def test_given_shares_are_used_as_they_are():
    vectors, experts, _ = clusters(labels=2)
    model = fit_pile(vectors, experts, shares=np.array([0.9, 0.1]))
    assert model.shares == pytest.approx([0.9, 0.1])
    plain = fit_pile(vectors, experts, shares=np.array([0.5, 0.5]))
    towards_first = model.linear.scores(vectors) - plain.linear.scores(vectors)
    assert (towards_first[:, 0] - towards_first[:, 1]).mean() > 0


def test_learned_shares_follow_a_pile_of_mostly_one_label():
    vectors, experts, truth = clusters(labels=2, per_label=100)
    rows = np.concatenate([np.flatnonzero(truth == 0), np.flatnonzero(truth == 1)[:10]])
    model = fit_pile(vectors[rows], experts[rows])
    assert model.shares[0] > 0.8
    assert accuracy(model.join(experts[rows], vectors[rows]), truth[rows]) > accuracy(experts[rows], truth[rows])


def test_a_pile_that_says_nothing_counts_less():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(200, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    noise = fit_pile(vectors, 0.3 * generator.normal(size=(200, 4)))
    assert noise.stability < fit_pile(*clusters()[:2]).stability
    assert noise.weight == 0
    silent = PileModel(noise.linear, noise.shares, 0.5, 200)
    experts = generator.normal(size=(200, 4))
    np.testing.assert_allclose(silent.join(experts, vectors), SHARPNESS * ANCHOR * experts)
