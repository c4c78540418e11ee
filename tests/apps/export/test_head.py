"""The ONNX graph of a classifier computes the classifier's probabilities, whatever kind of answer it gives."""

import numpy as np
import onnxruntime
import pytest

from tests.apps.distill.conftest import SENTENCES
from tests.conftest import BagEncoder
from zicl import ZICLClassifier
from zicl.apps.export.head import ensemble_head, linear_head
from zicl.config import Pile
from zicl.score.calibration import log_softmax
from zicl.score.pile import Linear

LABELS = ["film", "food", "train"]
KINDS = {
    "encoder alone": {"method": "encoder"},
    "a pile": {},
    "known shares": {"pile": Pile(shares={"film": 0.5, "food": 0.3, "train": 0.2})},
    "none of them": {"none": "other"},
    "several labels": {"multi": True},
}


def run(head, states, mask):
    session = onnxruntime.InferenceSession(head)
    return session.run(None, {"states": states.astype(np.float32), "mask": mask})[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::zicl.exceptions.PileWarning")
def test_probabilities_are_the_classifiers(kind):
    """One token per text, whose vector is the text's."""
    classifier = ZICLClassifier(None, LABELS, encoder=BagEncoder(), **{"method": "z-icl+", **KINDS[kind]})
    classifier.fit(SENTENCES)
    texts = [*SENTENCES[::3], "Something else entirely.", "film"]
    states = 3 * BagEncoder().encode(texts)[:, None]
    found = run(ensemble_head(classifier.ensemble_, "cls"), states, np.ones(states.shape[:2], dtype=np.int64))
    expected = [list(prediction.probabilities.values()) for prediction in classifier.classify(texts)]
    assert np.abs(found - np.array(expected)).max() < 1e-6


@pytest.mark.parametrize("component", [True, False])
def test_both_ways_to_fit_none_of_the_labels(component):
    from dataclasses import replace

    from zicl.score.pile import NoneModel, fit_pile

    classifier = ZICLClassifier(None, LABELS, encoder=BagEncoder(), method="encoder").fit()
    ensemble, vectors = classifier.ensemble_, BagEncoder().encode(SENTENCES)
    answers = ensemble.encoder_expert.scores(vectors, ensemble.labels)
    columns = np.concatenate([answers, answers[:, :1]], axis=1) if component else answers
    pile = replace(fit_pile(vectors, columns), none=NoneModel(0.3, 0.05, component))
    decision = ensemble.decision.model_copy(update={"none": "other"})
    ensemble = replace(ensemble, pile=pile, decision=decision)
    expected = [list(prediction.probabilities.values()) for prediction in ensemble.run(SENTENCES)]
    found = run(ensemble_head(ensemble, "cls"), vectors[:, None], np.ones((len(vectors), 1), dtype=np.int64))
    assert found.shape == (len(SENTENCES), 4)
    assert np.abs(found - np.array(expected)).max() < 1e-6


def test_padding_is_not_pooled():
    generator = np.random.default_rng(1)
    linear = Linear(generator.normal(size=(3, 8)), generator.normal(size=3))
    states = generator.normal(size=(2, 5, 8)).astype(np.float32)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    means = np.stack([states[0].mean(axis=0), states[1, :2].mean(axis=0)])
    vectors = (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)
    expected = np.exp(log_softmax(linear.scores(vectors)))
    assert run(linear_head(linear, "mean"), states, mask) == pytest.approx(expected, abs=1e-6)
