"""Calibration, shared demonstrations, several draws and joined inferences, through the classifier."""

import numpy as np
import pytest

import zicl
from tests.conftest import DOCUMENTS
from zicl import Labelling, Retrieval, Scoring, ZICLClassifier
from zicl.config import Calibration
from zicl.exceptions import ConfigError
from zicl.retrieve.strategies.base import Query
from zicl.retrieve.strategies.physical import Physical
from zicl.score.calibration import log_prior, log_softmax

TEXTS = [sentence for document in DOCUMENTS for sentence in document.rstrip(".").split(". ")][:12]
LABELS = ["terrible", "great"]


def classifier(index, lm, **more):
    more = {"retrieval": Retrieval(k=4), **more}
    return ZICLClassifier(index, LABELS, lm, **{"method": "z-icl", **more})


def values(results):
    return np.array([[score.value for score in result.scores] for result in results])


# -- batch calibration ------------------------------------------------------------------------------------


def test_batch_calibration_takes_off_the_mean_probability(index, lm):
    plain = values(classifier(index, lm).fit().classify(TEXTS))
    clf = classifier(index, lm, calibrate="batch").fit(TEXTS)
    expected = log_prior(plain)
    assert list(clf.fitted_.priors["channel"].values()) == pytest.approx(np.exp(expected).tolist(), abs=1e-6)
    np.testing.assert_allclose(values(clf.classify(TEXTS)), plain - expected, atol=1e-4)


def test_a_prediction_does_not_depend_on_its_batch(index, lm):
    clf = classifier(index, lm, calibrate="batch").fit(TEXTS)
    together = clf.predict_proba(TEXTS)
    for number, text in enumerate(TEXTS[:4]):
        np.testing.assert_allclose(clf.predict_proba([text])[0], together[number], atol=1e-4)


def test_priors_are_fitted_on_a_sample_that_the_order_does_not_change(index, lm):
    settings = Calibration(method="batch", texts=5)
    one = classifier(index, lm, calibrate=settings).fit(TEXTS)
    other = classifier(index, lm, calibrate=settings).fit(TEXTS[::-1])
    assert one.fitted_ == other.fitted_


@pytest.mark.parametrize("method", ["batch", "contextual"])
def test_means_over_tokens_are_calibrated_as_means(index, lm, method):
    scoring = Scoring(reduce="mean")
    plain = classifier(index, lm, scoring=scoring).fit().classify(TEXTS)
    clf = classifier(index, lm, scoring=scoring, calibrate=method).fit(TEXTS)
    result = clf.classify(TEXTS[:1])[0]
    if method == "batch":
        off = log_prior(values(plain))
    else:
        tokens = [len(branch.scored) for branch in result.prepared.prompt.branches[2:]]
        off = log_prior(np.array(result.probes) / np.reshape(tokens, (3, 2)))
    np.testing.assert_allclose(values([result])[0], values(plain[:1])[0] - off, atol=1e-4)


def test_no_texts_are_not_a_fit(index, lm):
    with pytest.raises(ConfigError, match="fit\\(\\) was given none"):
        classifier(index, lm, calibrate="batch").fit([])


def test_given_priors_need_no_texts(index, lm):
    plain = values(classifier(index, lm).fit().classify(TEXTS[:3]))
    given = Calibration(method="batch", priors={"terrible": 0.2, "great": 0.8})
    clf = classifier(index, lm, calibrate=given).fit()
    np.testing.assert_allclose(values(clf.classify(TEXTS[:3])), plain - np.log([0.2, 0.8]), atol=1e-4)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"calibrate": "batch"}, "fitted on texts"),
        ({"retrieval": Retrieval(k=4, share=8)}, "fitted on texts"),
        ({"calibrate": Calibration(method="batch", priors={"great": 0.5})}, "differ in: terrible"),
        (
            {
                "calibrate": Calibration(method="batch", priors={"great": 0.5, "terrible": 0.5}),
                "scoring": Scoring(inference="both"),
            },
            "several terms are joined: channel, direct",
        ),
    ],
)
def test_what_is_missing_is_said(index, lm, more, message):
    with pytest.raises(ConfigError, match=message):
        classifier(index, lm, **more).fit()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "contextual", "priors": {"a": 1.0}}, "belongs to the method 'batch'"),
        ({"method": "batch", "priors": {"a": 0.0}}, "each above 0"),
        ({"method": "other"}, "Input should be"),
    ],
)
def test_impossible_calibrations_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Calibration(**settings)


# -- shared demonstrations --------------------------------------------------------------------------------


def test_texts_of_a_cluster_share_their_prefix(index, lm):
    clf = classifier(index, lm, retrieval=Retrieval(k=4, share=4)).fit(TEXTS)
    assert len(clf.fitted_.cluster_texts) == 3
    outside = ["Pears are sold at the station.", "A lighthouse in a film.", "The waiter dropped a bowl."]
    by_middle = {}
    for text in (*outside, *(f"{text} again" for text in TEXTS)):
        middle = clf.pipeline_.clusters.nearest(index.embed(text))
        by_middle.setdefault(middle, set()).add(clf.pipeline_.prepare(text).prompt.prefix.tokens)
    assert len(by_middle) > 1
    assert all(len(prefixes) == 1 for prefixes in by_middle.values()), "one prefix a cluster"
    order = clf.order(TEXTS)
    assert sorted(order) == list(range(len(TEXTS)))
    met = [clf.pipeline_.clusters.nearest(index.embed(TEXTS[n])) for n in order]
    assert met == sorted(met, key=met.index), "texts of a cluster stand together"
    middle = clf.pipeline_.clusters.nearest(index.embed(outside[0]))
    around = Physical().retrieve(index, Query(outside[0], search_text=middle), 4)
    assert clf.pipeline_.retrieve(outside[0]) == around


def test_a_text_of_the_corpus_never_demonstrates_itself_in_a_cluster(index, lm):
    clf = classifier(index, lm, retrieval=Retrieval(k=4, share=12)).fit(TEXTS)
    for text in TEXTS:
        shown = clf.pipeline_.prepare(text + ".").demos
        assert text + "." not in [demo.sentence.text for demo in shown]


# -- labels -----------------------------------------------------------------------------------------------


def test_balanced_labels_never_differ_by_more_than_one(index, lm):
    clf = classifier(index, lm, labelling=Labelling(balanced=True), retrieval=Retrieval(k=5)).fit()
    for text in TEXTS:
        counts = [[demo.label for demo in clf.pipeline_.prepare(text).demos].count(name) for name in LABELS]
        assert abs(counts[0] - counts[1]) == 1


def test_several_draws_are_averaged_and_their_spread_is_told(index, lm):
    clf = classifier(index, lm, labelling=Labelling(assignments=3)).fit()
    result = clf.classify(TEXTS[:1])[0]
    assert len(result.parts) == 3
    sentences = {tuple(demo.sentence.row for demo in part.prepared.demos) for part in result.parts}
    assert len(sentences) == 1, "the same demonstrations"
    assert len({tuple(demo.label for demo in part.prepared.demos) for part in result.parts}) > 1, "with other labels"
    np.testing.assert_allclose(values([result])[0], values(result.parts).mean(axis=0))
    first = classifier(index, lm).fit().classify(TEXTS[:1])[0]
    np.testing.assert_allclose(values([result.parts[0]]), values([first]), atol=1e-4)
    shares = [part.probabilities[result.label] for part in result.parts]
    assert result.spread == pytest.approx(np.std(shares, ddof=1))
    assert first.spread is None


def test_own_labels_are_the_models_answers_without_demonstrations(index, lm):
    clf = classifier(index, lm, labelling=Labelling(source="self")).fit()
    labeler = clf.pipeline_.labeler
    zero = ZICLClassifier(None, LABELS, lm, method="no-demos").fit()
    rows = [item.row for item in clf.pipeline_.retrieve(TEXTS[0])]
    assert len(rows) == 8, "twice k are asked about"
    every = index.indexed()
    prior = log_prior(values(zero.classify([index.sentence(int(row)).text for row in every])))
    scores = values(zero.classify([index.sentence(row).text for row in rows])) - prior
    shares = np.exp(log_softmax(scores))
    drawn = labeler.label(rows, 0, "x")
    assert [item.label for item in drawn] == [LABELS[n] for n in shares.argmax(axis=1)]
    assert [item.confidence for item in drawn] == pytest.approx(shares.max(axis=1).tolist(), abs=1e-5)
    surest = {rows[n] for n in np.argsort(-shares.max(axis=1), kind="stable")[:4]}
    assert {demo.sentence.row for demo in clf.pipeline_.prepare(TEXTS[0]).demos} == surest


def test_own_labels_go_with_no_option_of_a_draw():
    with pytest.raises(ValueError, match="draws no labels"):
        Labelling(source="self", assignments=2)


# -- joined terms -----------------------------------------------------------------------------------------


def test_both_inferences_are_the_mean_of_their_log_probabilities(index, lm):
    single = [
        values(classifier(index, lm, scoring=Scoring(inference=name)).fit().classify(TEXTS[:3]))
        for name in ("channel", "direct")
    ]
    clf = classifier(index, lm, scoring=Scoring(inference="both")).fit()
    results = clf.classify(TEXTS[:3])
    expected = np.mean([log_softmax(scores) for scores in single], axis=0)
    np.testing.assert_allclose(values(results), expected, atol=1e-4)
    assert list(results[0].terms) == ["channel", "direct"]


def test_the_cosine_is_one_more_term(index, lm):
    clf = classifier(index, lm, scoring=Scoring(experts=("prompt", "cosine"))).fit()
    result = clf.classify(TEXTS[:1])[0]
    cosines = [float(index.embed(TEXTS[0]) @ index.embed(label)) for label in LABELS]
    assert result.terms["cosine"] == pytest.approx([20 * cosine for cosine in cosines], abs=1e-5)
    plain = values(classifier(index, lm).fit().classify(TEXTS[:1]))
    expected = (log_softmax(plain) + log_softmax(np.array([result.terms["cosine"]]))) / 2
    np.testing.assert_allclose(values([result]), expected, atol=1e-4)


def test_each_term_has_a_prior_of_its_own(index, lm):
    clf = classifier(index, lm, scoring=Scoring(inference="both", experts=("prompt", "cosine")), calibrate="batch").fit(
        TEXTS
    )
    assert list(clf.fitted_.priors) == ["channel", "direct", "cosine"]
    for shares in clf.fitted_.priors.values():
        assert sum(shares.values()) == pytest.approx(1)
    result = clf.classify(TEXTS[:1])[0]
    less = [np.array(result.terms[name]) - np.log(list(clf.fitted_.priors[name].values())) for name in result.terms]
    np.testing.assert_allclose(values([result])[0], np.mean([log_softmax(term) for term in less], axis=0), atol=1e-6)


def test_progress_counts_texts(index, lm):
    moved = []
    classifier(index, lm, scoring=Scoring(inference="both")).fit().classify(TEXTS, moved.append)
    assert sum(moved) == len(TEXTS)


# -- saved ------------------------------------------------------------------------------------------------


def test_what_was_learned_is_saved_and_frozen(index, lm_folder, tmp_path):
    clf = ZICLClassifier(
        index,
        LABELS,
        str(lm_folder),
        retrieval=Retrieval(k=4, share=4),
        scoring=Scoring(inference="both", experts=("prompt", "cosine")),
        labelling=Labelling(assignments=2, balanced=True),
        calibrate="batch",
        method="z-icl",
    ).fit(TEXTS)
    again = zicl.load(clf.save(tmp_path / "c.zicl-clf"), index=index)
    assert again.fitted_ == clf.fitted_
    assert again.settings_ == clf.settings_
    assert again.predict_proba(TEXTS[:3]) == pytest.approx(clf.predict_proba(TEXTS[:3]), abs=1e-4)
