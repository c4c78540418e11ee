"""Scores as probabilities, their priors, and opinions joined: closed forms and properties."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from zicl.score.calibration import join_terms, log_prior, log_softmax

NUMBERS = st.floats(-200, 200, allow_nan=False)
TABLES = st.tuples(st.integers(1, 6), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=NUMBERS)
)


@given(TABLES)
def test_probabilities_sum_to_one(scores):
    np.testing.assert_allclose(np.exp(log_softmax(scores)).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(log_prior(scores)).sum(), 1)


@given(TABLES, NUMBERS)
def test_a_constant_added_to_a_row_changes_nothing(scores, constant):
    moved = scores.copy()
    moved[0] += constant
    np.testing.assert_allclose(log_softmax(moved), log_softmax(scores), atol=1e-9)
    np.testing.assert_allclose(log_prior(moved), log_prior(scores), atol=1e-9)
    np.testing.assert_allclose(
        np.diff(join_terms(np.stack([moved[0], scores[0]]))),
        np.diff(join_terms(np.stack([scores[0], scores[0]]))),
        atol=1e-9,
    )


@given(TABLES)
def test_a_symmetric_batch_leaves_scores_unchanged(scores):
    turned = [np.roll(scores, shift, axis=1) for shift in range(scores.shape[1])]
    prior = log_prior(np.concatenate(turned))
    np.testing.assert_allclose(prior, prior[0], atol=1e-9)


def test_a_prior_is_the_mean_probability():
    np.testing.assert_allclose(log_prior(np.log([[0.8, 0.2], [0.4, 0.6]])), np.log([0.6, 0.4]))


def test_a_label_no_text_gets_has_a_finite_prior():
    assert np.isfinite(log_prior(np.array([[0.0, -5000.0], [0.0, -6000.0]]))).all()


def test_one_term_stays_as_it_is_and_several_are_normalised_first():
    one = np.array([[-10.0, -12.0]])
    assert join_terms(one).tolist() == [-10, -12]
    both = join_terms(np.add(np.log([[0.9, 0.1], [0.1, 0.9]]), [[-7.0], [3.0]]))
    np.testing.assert_allclose(both[0], both[1])
