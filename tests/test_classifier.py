"""The classifier: scikit-learn's contract, and answers that depend on nothing but their text."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import (
    check_estimator_repr,
    check_get_params_invariance,
    check_mixin_order,
    check_no_attributes_set_in_init,
    check_set_params,
)  # fmt: skip

from tests.conftest import DOCUMENTS, BagEncoder
from zicl import ZICLClassifier
from zicl.config import METHODS, Labelling, PromptSettings, Retrieval, Scoring
from zicl.exceptions import ConfigError, LabelError, TextError, UnknownNameError
from zicl.explanation import Explanation
from zicl.score.results import LabelScore, Prediction

TEXTS = [
    "The soup was cold.",
    "She sang like a bird.",
    "A bold little film.",
    "My phone went dark.",
    "The train was slow.",
]
LABELS = ["terrible", "great"]
SMALL = Retrieval(k=4)


def classifier(index, lm, **more):
    return ZICLClassifier(index, LABELS, lm, **{"method": "z-icl", "retrieval": SMALL, **more})


@pytest.fixture
def clf(index, lm):
    return classifier(index, lm).fit()


def test_predictions_are_the_best_column_and_probabilities_sum_to_one(clf):
    compared = [{score.label: score.value for score in result.scores} for result in clf.classify(TEXTS)]
    scores, shares = np.array([[row["great"], row["terrible"]] for row in compared]), clf.predict_proba(TEXTS)
    assert clf.classes_.tolist() == ["great", "terrible"]
    assert clf.predict(TEXTS).tolist() == clf.classes_[scores.argmax(axis=1)].tolist()
    assert clf.decision_function(TEXTS) == pytest.approx(scores[:, 1] - scores[:, 0])
    assert shares.sum(axis=1) == pytest.approx(1)
    expected = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert shares == pytest.approx(expected / expected.sum(axis=1, keepdims=True))


def test_three_labels_have_a_column_each(index, lm):
    clf = ZICLClassifier(
        index, {"terrible": "bad", "great": "good", "odd": "strange"}, lm, retrieval=SMALL, method="z-icl"
    ).fit()
    scores = clf.decision_function(TEXTS)
    assert scores.shape == (5, 3)
    assert clf.predict(TEXTS).tolist() == clf.classes_[scores.argmax(axis=1)].tolist()


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "accuracy"])
def test_scorers_of_two_labels_work(index, lm, scoring):
    gold = ["great", "terrible", "great", "terrible", "great"]
    found = cross_val_score(classifier(index, lm), TEXTS, gold, cv=2, scoring=scoring, error_score="raise")
    assert np.isfinite(found).all()


@pytest.mark.parametrize("method", [name for name, preset in METHODS.items() if preset.scoring.asks_lm])
@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_every_preset_with_a_prompt_runs_and_scores_as_a_plain_forward(index, lm, method, inference):
    import torch

    retrieval = METHODS[method].retrieval.model_copy(update={"k": min(4, METHODS[method].retrieval.k)})
    made = ZICLClassifier(
        index, LABELS, lm, method=method, retrieval=retrieval, scoring=Scoring(inference=inference)
    ).fit()
    results = made.classify(TEXTS)
    with torch.inference_mode():
        for result in results:
            plain = lm.forward.plain(result.prepared.prompt)
            for score, row in zip(result.scores, plain, strict=True):
                assert score.log_likelihood == pytest.approx(float(row.sum()), abs=1e-4)
                assert score.tokens == len(row)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(TEXTS))), count=st.integers(1, len(TEXTS)))
def test_no_answer_depends_on_other_inputs_or_their_order(clf, order, count):
    chosen = [TEXTS[n] for n in order[:count]]
    alone = np.concatenate([clf.decision_function([text]) for text in chosen])
    assert clf.decision_function(chosen) == pytest.approx(alone, abs=1e-4)
    for text, result in zip(chosen, clf.classify(chosen), strict=True):
        assert result.prepared == clf.classify([text])[0].prepared


def test_the_seed_decides_and_only_the_seed(index, lm):
    def words(seed):
        return [d.words for d in classifier(index, lm, seed=seed).fit().classify(TEXTS[:1])[0].prepared.demos]

    assert words(1) == words(1)
    assert len({tuple(words(seed)) for seed in range(6)}) > 1


def test_mean_divides_by_the_tokens(index, lm):
    total = classifier(index, lm).fit().classify(TEXTS[:1])[0]
    mean = classifier(index, lm, scoring=Scoring(reduce="mean")).fit().classify(TEXTS[:1])[0]
    for a, b in zip(total.scores, mean.scores, strict=True):
        assert b.value == pytest.approx(a.value / a.tokens)


def test_changing_only_the_labels_searches_and_embeds_nothing_again(clf, index, monkeypatch):
    before = clf.classify(TEXTS)
    monkeypatch.setattr(BagEncoder, "encode", None)
    monkeypatch.setattr("zicl.retrieve.search.search", None)
    after = clf.set_params(labels={"dull": "flat", "fine": "nice"}).fit().classify(TEXTS)
    for old, new in zip(before, after, strict=True):
        assert [d.sentence for d in old.prepared.demos] == [d.sentence for d in new.prepared.demos]


def test_demonstrations_stand_nearest_last_and_show_synonyms(clf):
    demos = clf.classify(TEXTS[:1])[0].prepared.demos
    assert [d.similarity for d in demos] == sorted(d.similarity for d in demos)
    assert {d.words for d in demos} <= {"good", "bad"}


@pytest.mark.parametrize("shared", [True, False])
def test_random_inputs_share_sentences_and_may_share_labels(index, lm, shared):
    retrieval, labelling = Retrieval(method="random", k=4), Labelling(shared=shared)
    made = ZICLClassifier(index, LABELS, lm, method="random-inputs", retrieval=retrieval, labelling=labelling).fit()
    found = made.classify(TEXTS)
    assert len({tuple(demo.sentence for demo in r.prepared.demos) for r in found}) == 1
    assert (len({r.prepared.prompt.prefix.tokens for r in found}) == 1) == shared


# -- scikit-learn ---------------------------------------------------------------------------------


def test_the_checks_that_apply_to_text_estimators(index, lm):
    made = classifier(index, lm)
    check_estimator_repr("ZICLClassifier", made)
    check_no_attributes_set_in_init("ZICLClassifier", made)
    check_get_params_invariance("ZICLClassifier", made)
    check_set_params("ZICLClassifier", made)
    check_mixin_order("ZICLClassifier", made)


def test_clone_keeps_handles_and_parameters(clf, index, lm):
    copied = clone(clf)
    assert copied.index is index
    assert copied.lm is lm
    assert not hasattr(copied, "pipeline_")
    assert copied.get_params().keys() == clf.get_params().keys()
    assert copy.deepcopy(index) is index
    assert copied.fit().predict(TEXTS).tolist() == clf.predict(TEXTS).tolist()


def test_cross_validation_and_pipelines(index, lm):
    y = ["terrible", "great", "great", "terrible", "terrible"]
    scores = cross_val_score(classifier(index, lm), TEXTS, y, cv=2)
    assert scores.shape == (2,)
    pipeline = Pipeline(
        [("tidy", FunctionTransformer(lambda X: [x.strip() for x in X])), ("clf", classifier(index, lm))]
    )
    assert pipeline.fit(TEXTS, y).predict([" The soup was cold. "])[0] in LABELS
    pipeline.set_params(clf__method="no-demos", clf__retrieval=None)
    assert pipeline.fit(TEXTS, y).predict(TEXTS).shape == (5,)


def test_fit_writes_nothing_to_the_corpus_and_learns_nothing(index, lm):
    before = {p: p.stat().st_mtime_ns for p in index.corpus.path.rglob("*")}
    made = classifier(index, lm)
    first = made.fit().decision_function(TEXTS)
    second = made.fit(TEXTS, ["great"] * 5).decision_function(TEXTS)
    assert first.tolist() == second.tolist()
    assert before == {p: p.stat().st_mtime_ns for p in index.corpus.path.rglob("*")}


def test_fit_texts_join_in_memory_only_when_asked(index, lm, tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))
    extra = ["My phone went dark again. Nobody could say why."]
    made = classifier(index, lm, retrieval=Retrieval(k=4, include_fit_texts=True)).fit(extra)
    texts = [d.sentence.text for d in made.classify(["My phone went dark."])[0].prepared.demos]
    assert "Nobody could say why." in texts
    plain = classifier(index, lm).fit(extra).classify(["My phone went dark."])[0]
    assert "Nobody could say why." not in [d.sentence.text for d in plain.prepared.demos]


def test_from_texts_never_demonstrates_a_text_with_itself(lm, tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))
    frame = pd.DataFrame({"text": DOCUMENTS})
    made = ZICLClassifier.from_texts(
        frame["text"], labels=LABELS, lm=lm, encoder=BagEncoder(), retrieval=SMALL, method="z-icl"
    ).fit()
    for number, result in enumerate(made.classify(frame["text"])):
        for demo in result.prepared.demos:
            assert demo.sentence.document != number
            assert demo.nearest.document != number
    again = ZICLClassifier.from_texts(frame["text"], labels=LABELS, lm=lm, encoder=BagEncoder(), method="z-icl")
    assert again.fit().index_.corpus.path == made.index_.corpus.path


# -- bad input ------------------------------------------------------------------------------------


def test_before_fit():
    with pytest.raises(NotFittedError):
        ZICLClassifier("x", LABELS, method="z-icl").predict(TEXTS)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "a list was expected"),
        (["fine", "  "], "row 1 is empty"),
        (["a\0b"], "NUL"),
        ([None], "NoneType"),
        (pd.DataFrame({"text": ["x"]}), "a column of texts was expected"),
        ([float("nan")], "float"),
        (["\ud800"], "broken character"),
    ],
)
def test_bad_texts_are_named(clf, texts, message):
    with pytest.raises(TextError, match=message):
        clf.predict(texts)


def test_bad_settings(index, lm):
    with pytest.raises(LabelError, match="no labels"):
        ZICLClassifier(index, lm=lm, method="z-icl").fit()
    with pytest.raises(LabelError, match="'awful'"):
        classifier(index, lm).fit(TEXTS, ["awful"] * 5)
    with pytest.raises(UnknownNameError, match="did you mean 'z-icl'"):
        classifier(index, lm, method="zicl").fit()
    with pytest.raises(ConfigError, match="needs a corpus"):
        classifier(None, lm).fit()
    with pytest.raises(ConfigError, match="calibrate"):
        classifier(index, lm, calibrate="btach").fit()
    with pytest.raises(ValueError, match="extra"):
        Retrieval(kk=3)
    with pytest.raises(ValueError, match="greater than or equal"):
        Retrieval(k=-1)


def test_a_setting_changes_the_method_and_does_not_replace_it(index, lm):
    made = ZICLClassifier(index, LABELS, lm, method="naive", retrieval=Retrieval(k=3)).fit()
    assert made.settings_.retrieval == Retrieval(method="nearest", k=3)


def test_labels_that_cannot_be_told_apart_are_found_by_fit(index, lm):
    with pytest.raises(LabelError):
        ZICLClassifier(index, ["great", "great "], lm, method="naive").fit()


def test_scores_that_are_no_numbers_are_an_error(clf, lm, monkeypatch):
    from zicl.exceptions import ModelError

    monkeypatch.setattr(lm.forward, "packed", lambda batch, past=None: [[(np.array([np.nan]),) * 2]] * len(batch))
    with pytest.raises(ModelError, match="not a number"):
        clf.predict(TEXTS[:1])


def test_labelling_and_templates(index, lm):
    made = classifier(
        index,
        lm,
        labelling=Labelling(words="original"),
        prompt=PromptSettings(template=("Q: {input}", "A: {label}")),
    ).fit()
    explanation = made.explain(TEXTS[0])
    assert "Q: The soup was cold." in explanation.prompt
    assert {d.words for d in explanation.demonstrations} <= set(LABELS)


# -- explanations ---------------------------------------------------------------------------------


DIFFER = "the encoder alone says a, the pile says b"


@pytest.mark.parametrize(
    ("encoder", "pile", "together", "verdict"),
    [
        ([2.0, 1.0], [3.0, 0.0], [5.0, 1.0], "the encoder and the pile agree on a"),
        (
            [2.0, 1.0],
            [0.0, 3.0],
            [5.0, 1.0],
            f"{DIFFER}: the encoder's answer stays, a",
        ),
        (
            [2.0, 1.0],
            [0.0, 3.0],
            [1.0, 5.0],
            f"{DIFFER}: the pile changes the answer, b",
        ),
        ([2.0, 1.0], None, [1.0, 5.0], ""),
    ],
)
def test_an_explanation_says_what_the_pile_changed(encoder, pile, together, verdict):
    terms = {"encoder": encoder} | ({} if pile is None else {"pile": pile})
    scores = tuple(LabelScore(name, None, 0, value) for name, value in zip("ab", together, strict=True))
    near = {"a": [("a", 0.5), ("<odd>", 0.25)], "b": [("b", 0.125)]}
    explanation = Explanation(Prediction("A text.", scores, terms=terms), near)
    assert explanation.verdict == explanation.to_dict()["verdict"] == verdict
    assert verdict in str(explanation)
    assert "a 0.50, <odd> 0.25" in str(explanation)
    assert "a 0.50, &lt;odd&gt; 0.25" in explanation._repr_html_()


def test_an_explanation_shows_everything(clf):
    explanation = clf.explain("The <b>soup</b> was [bold]cold[/bold].")
    text = str(explanation)
    for demo in explanation.demonstrations:
        assert demo.sentence.text[:25] in text
        assert f"#{demo.nearest.row}" in text
    assert "[bold]cold[/bold]" in text
    page = explanation._repr_html_()
    assert "&lt;b&gt;soup" in page
    assert "<b>soup</b>" not in page
    plain = explanation.to_dict()
    assert plain["label"] == explanation.label
    assert len(plain["demonstrations"]) == 4
    assert plain["prompt"]["branches"][0]["scored"].startswith("\nReview: ")


@pytest.mark.parametrize("order", ["nearest-last", "nearest-first", "shuffled"])
def test_an_explanation_lists_the_nearest_first_however_they_stand(index, lm, order):
    explanation = classifier(index, lm, retrieval=Retrieval(k=4, order=order)).fit().explain("The soup was cold.")
    text = str(explanation)
    assert "nearest first:" in text
    listed = sorted(explanation.demonstrations, key=lambda demo: text.index(demo.sentence.text[:25]))
    similarities = [demo.similarity for demo in listed]
    assert similarities == sorted(similarities, reverse=True)
    assert len(set(similarities)) > 1


def test_the_model_s_own_labels_are_those_of_its_scoring(index, lm, monkeypatch):
    def labels(reduce):
        chosen = {"labelling": Labelling(source="self"), "scoring": Scoring(reduce=reduce)}
        return [d.label for d in classifier(index, lm, **chosen).fit().classify(["Snow fell."])[0].prepared.demos]

    index.clear_cache()
    asked, real = [], index.cached

    def cached(key, compute):
        found = real(key, compute)
        if key[0] == "self-labels":
            asked.append((key[-1], key[-2].reduce, found))
        return found

    monkeypatch.setattr(index, "cached", cached)
    before = labels("mean")
    labels("sum")
    assert labels("mean") == before
    by_way = {way: {rows: scores for rows, each, scores in asked if each == way} for way in ("mean", "sum")}
    assert by_way["mean"].keys() & by_way["sum"].keys()
    assert all((by_way["sum"][rows] != by_way["mean"][rows]).any() for rows in by_way["mean"].keys() & by_way["sum"])


def test_no_pickle_is_needed_for_settings():
    # Settings are plain values; that they also pickle is what joblib's workers need.
    assert pickle.loads(pickle.dumps(Retrieval(k=3))) == Retrieval(k=3)
