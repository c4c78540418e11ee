"""Inputs without content, and what they take off a score."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS
from zicl import Retrieval, Scoring, ZICLClassifier
from zicl.config import Calibration, PromptSettings
from zicl.exceptions import ConfigError
from zicl.score.calibration import CONTENT_FREE, DomainWordProbes, log_prior, make_probes

LABELS = ["terrible", "great"]


@given(st.integers(1, 5), st.integers(0, 9), st.text(max_size=5))
def test_domain_words_are_words_of_the_demonstrations(draws, seed, key):
    probes = DomainWordProbes(draws).inputs(DOCUMENTS, seed, key)
    assert len(probes) == draws
    assert {word for probe in probes for word in probe.split()} <= {word for d in DOCUMENTS for word in d.split()}
    assert probes == DomainWordProbes(draws).inputs(DOCUMENTS, seed, key)


def test_what_cannot_be_done_is_said():
    with pytest.raises(ConfigError, match="this method has none"):
        make_probes(Calibration(method="domain"), k=0, bare_line=True)
    with pytest.raises(ConfigError, match="no words of its own"):
        make_probes(Calibration(method="pmi"), k=4, bare_line=False)
    assert make_probes(Calibration(method="contextual"), k=4, bare_line=False).texts == CONTENT_FREE[:2]
    assert make_probes(Calibration(method="batch"), k=4, bare_line=True) is None


@pytest.mark.parametrize("method", ["contextual", "domain", "pmi"])
@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_probes_are_scored_in_the_same_pass_as_by_plain_forwards(index, lm, method, inference):
    settings = {"retrieval": Retrieval(k=4), "scoring": Scoring(inference=inference)}
    plain = (
        ZICLClassifier(index, LABELS, lm, **{"method": "z-icl", **settings}).fit().classify(["The soup was warm."])[0]
    )
    clf = ZICLClassifier(index, LABELS, lm, calibrate=method, **{"method": "z-icl", **settings}).fit()
    result = clf.classify(["The soup was warm."])[0]
    assert [s.log_likelihood for s in result.scores] == pytest.approx(
        [s.log_likelihood for s in plain.scores], abs=1e-4
    )

    prompt = result.prepared.prompt
    with torch.inference_mode():
        wanted = [float(row.sum()) for row in lm.forward.plain(prompt)]
    assert np.ravel(result.probes).tolist() == pytest.approx(wanted[2:], abs=1e-4)
    assert len(result.probes) == {"contextual": 3, "domain": 4, "pmi": 1}[method]
    taken_off = log_prior(np.array(result.probes))
    values = [s.log_likelihood - off for s, off in zip(result.scores, taken_off, strict=True)]
    assert [s.value for s in result.scores] == pytest.approx(values, abs=1e-6)


def test_with_one_probe_of_the_same_text_nothing_is_left(index, lm):
    """Pointwise mutual information of a text with itself as the premise: all labels are alike."""
    calibrate = Calibration(method="pmi", premise="The soup was warm.")
    clf = ZICLClassifier(index, LABELS, lm, retrieval=Retrieval(k=4), calibrate=calibrate, method="z-icl").fit()
    assert clf.predict_proba(["The soup was warm."])[0] == pytest.approx([0.5, 0.5], abs=1e-4)


def test_a_template_without_words_scores_no_empty_line(index, lm):
    clf = ZICLClassifier(
        index,
        LABELS,
        lm,
        retrieval=Retrieval(k=2),
        prompt=PromptSettings(template="none"),
        calibrate="contextual",
        method="z-icl",
    ).fit()
    assert len(clf.classify(["The soup was warm."])[0].probes) == 2
