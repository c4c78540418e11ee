"""Agreement of a student with its teacher."""

from dataclasses import asdict

import numpy as np
import pytest

from zicl.apps.distill.agreement import Agreement, measure_agreement


def test_agreement_counts_equal_labels_beside_the_majority_baseline():
    probabilities = np.array([[0.9, 0.1, 0], [0.8, 0.2, 0], [0.6, 0.4, 0], [0.1, 0.9, 0]])
    scores = np.log([[0.9, 0.05, 0.05], [0.3, 0.6, 0.1], [0.5, 0.4, 0.1], [0.1, 0.8, 0.1]])
    agreement = measure_agreement(["a", "b", "c"], probabilities, scores)
    assert (agreement.rows, agreement.value, agreement.most, agreement.majority) == (4, 0.75, "a", 0.75)
    assert agreement.low < 0.75 < agreement.high
    assert [(x.rows, x.given, x.agreement) for x in agreement.labels] == [(3, 2, 2 / 3), (1, 2, 1.0), (0, 0, None)]
    assert agreement.labels[2].divergence is None
    assert agreement.divergence > 0
    assert agreement.log_loss == pytest.approx(-(probabilities * scores).sum(axis=1).mean())
    same = measure_agreement(["a", "b", "c"], probabilities, np.log(probabilities + 1e-12))
    assert same.value == 1
    assert same.divergence == pytest.approx(0, abs=1e-9)


def test_agreement_survives_plain_values():
    agreement = measure_agreement(["a", "b"], np.array([[0.9, 0.1]]), np.zeros((1, 2)))
    assert Agreement.from_dict(asdict(agreement)) == agreement
