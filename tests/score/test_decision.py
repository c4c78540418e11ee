"""None of the labels and several of them: what is learned from the pile, and how a classifier answers."""

import hashlib
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

import zicl
from tests.conftest import BagEncoder
from tests.score.test_pile import clusters
from zicl import Labels, ZICLClassifier
from zicl.config import Decision
from zicl.exceptions import ConfigError, LabelError
from zicl.score.decision import fit_multi, fit_none, none_curve
from zicl.score.pile import against_background
from zicl.score.results import LabelScore, Prediction

LABELS = {"soup": ["broth"], "train": ["railway"], "film": ["cinema"]}
# Written for this project.
SOUP = [f"The soup number {n} was hot, a broth with bread and salt." for n in range(30)]
TRAIN = [f"The train number {n} was late, a railway with rails and smoke." for n in range(30)]
FILM = [f"The film number {n} was long, a cinema with actors and music." for n in range(30)]
BOTH = [f"{soup} {train}" for soup, train in zip(SOUP[:15], TRAIN[:15], strict=True)]
ODD = [f"Clause {n}: lessee shall indemnify lessor against liability hereunder." for n in range(25)]


class WideEncoder(BagEncoder):
    """The same with more dimensions and no signs: only words that are shared make texts alike."""

    dimension = 1024

    def encode(self, texts):
        rows = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace(".", "").replace(",", "").split():
                rows[row, int.from_bytes(hashlib.blake2b(word.encode(), digest_size=2).digest()) % 1024] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))


def classifier(**settings):
    return ZICLClassifier(**{"labels": LABELS, "encoder": WideEncoder(), **settings})


# -- what is learned -------------------------------------------------------------------------------------------


def with_outsiders(share, seed=0):
    """Clusters of three labels, and texts of a fourth kind that are close to no label."""
    vectors, experts, truth = clusters(labels=4, per_label=60, seed=seed)
    generator = np.random.default_rng(seed)
    keep = (truth < 3) | (generator.random(len(truth)) < share / (1 - share) * 3)
    vectors, experts, truth = vectors[keep], experts[keep][:, :3], truth[keep]
    closeness = 0.5 - 0.25 * (truth == 3) + 0.1 * generator.normal(size=len(truth))
    return vectors, experts, closeness, truth


@given(seed=st.integers(0, 10))
def test_texts_that_fit_no_label_become_a_component(seed):
    vectors, experts, closeness, truth = with_outsiders(0.25, seed)
    model = fit_none(vectors, experts, closeness)
    assert model.none.component
    scores = model.join(experts, vectors, closeness)
    assert scores.shape == (len(truth), 4)
    assert ((scores.argmax(axis=1) == 3) == (truth == 3)).mean() > 0.9


@given(seed=st.integers(0, 10))
def test_where_every_text_fits_hardly_any_is_sent_away(seed):
    vectors, experts, closeness, _ = with_outsiders(0.0, seed)
    model = fit_none(vectors, experts, closeness)
    assert (model.join(experts, vectors, closeness).argmax(axis=1) == 3).mean() < 0.15


def test_gold_rows_say_where_none_begins():
    vectors, experts, closeness, truth = with_outsiders(0.25)
    # Closeness that says nothing: only gold rows can tell.
    blind = np.full_like(closeness, 0.4) + 1e-3 * closeness
    gold = np.where(np.arange(len(truth)) % 3 == 0, truth, -1)
    model = fit_none(vectors, experts, blind, gold=gold)
    rest = gold < 0
    found = model.join(experts, vectors, blind).argmax(axis=1) == 3
    assert (found == (truth == 3))[rest].mean() > 0.9


@given(order=st.permutations(range(3)), seed=st.integers(0, 3))
def test_permuted_labels_give_permuted_answers(order, seed):
    vectors, experts, closeness, _ = with_outsiders(0.25, seed)
    plain, other = (fit_none(vectors, each, closeness) for each in (experts, experts[:, order]))
    expected = plain.join(experts, vectors, closeness)[:, [*order, 3]]
    np.testing.assert_allclose(other.join(experts[:, order], vectors, closeness), expected, atol=1e-5)
    unknown = np.zeros(experts.shape, dtype=bool), np.zeros(len(experts), dtype=bool)
    plain, other = (fit_multi(vectors, each, *unknown) for each in (experts, experts[:, order]))
    np.testing.assert_allclose(
        other.join(experts[:, order], vectors), plain.join(experts, vectors)[:, order], atol=1e-5
    )


def test_a_text_between_two_labels_gets_both():
    vectors, experts, truth = clusters(labels=4, per_label=60)
    # The middle of two texts of the first two labels.
    both = vectors[:40] + vectors[60:100]
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    vectors, experts = np.concatenate([vectors, both]), np.concatenate([experts, experts[:40] + experts[60:100]])
    gold = np.concatenate([np.eye(4)[truth], np.tile([1, 1, 0, 0], (40, 1))])
    model = fit_multi(vectors, experts, np.zeros(gold.shape, dtype=bool), np.zeros(len(gold), dtype=bool))
    given_labels = model.join(experts, vectors) >= 0
    assert f1_score(gold, given_labels, average="micro") > 0.85
    # Gold rows move thresholds: here all texts of the first label are said to have the second too.
    taught = np.zeros(gold.shape, dtype=bool)
    taught[:60:2, :2] = True
    more = fit_multi(vectors, experts, taught, taught.any(axis=1)).join(experts, vectors) >= 0
    assert more[1:60:2, 1].sum() > given_labels[1:60:2, 1].sum()
    # Known to have no label at all.
    fewer = fit_multi(vectors, experts, np.zeros(gold.shape, dtype=bool), np.arange(len(gold)) % 2 == 0)
    assert (fewer.join(experts, vectors) >= 0).sum() < given_labels.sum() / 2


def test_evidence_is_compared_with_the_middle_of_the_pile():
    assert (against_background(np.array([[5.0, 5.0], [-5.0, -5.0]])) > 0).tolist() == [[True, True], [False, False]]


def test_the_curve_says_what_a_threshold_costs():
    rows = [{"a": 0.5, "b": 0.2, "other": 0.3}, {"a": 0.1, "b": 0.1, "other": 0.8}]
    points = none_curve(rows, "other", [0.2, 0.5, 0.9], ["a", "other"])
    assert [(point.share, point.accuracy) for point in points] == [(1.0, 0.5), (0.5, 1.0), (0.0, 0.5)]
    assert none_curve(rows, "other", [0.5])[0].accuracy is None


# -- predictions -----------------------------------------------------------------------------------------------


def prediction(decision, **values):
    return Prediction("x", tuple(LabelScore(n, None, 0, v) for n, v in values.items()), decision=decision)


def test_a_threshold_decides_about_none():
    scores = {"a": np.log(0.5), "b": np.log(0.2), "other": np.log(0.3)}
    plain = prediction(Decision(none="other"), **scores)
    assert plain.labels == ("a",)
    assert plain.margin == pytest.approx(0.2)
    sent = prediction(Decision(none="other", threshold=0.25), **scores)
    assert sent.margin == pytest.approx(0.05)
    assert prediction(Decision(none="other", threshold=0.25), **scores).labels == ("other",)
    assert prediction(Decision(none="other", threshold=0.0), **scores).labels == ("other",)
    assert prediction(Decision(none="other", threshold=1.0), a=0.0, b=-1.0, other=9.0).labels == ("a",)


def test_several_labels_have_thresholds_of_their_own():
    scores = {"a": 2.0, "b": 0.5, "c": -3.0}
    found = prediction(Decision(multi=True), **scores)
    assert (found.labels, found.label) == (("a", "b"), "a|b")
    assert found.probabilities["a"] == pytest.approx(1 / (1 + np.exp(-2)))
    assert found.margin == pytest.approx(found.probabilities["b"] - 0.5)
    assert prediction(Decision(multi=True, threshold=0.99), **scores).labels == ()
    assert prediction(Decision(multi=True, threshold={"b": 0.9}), **scores).labels == ("a",)
    assert [name for name, _ in found.top(2)] == ["a", "b"]


# -- the classifier --------------------------------------------------------------------------------------------


def test_a_text_that_fits_no_label_gets_none(tmp_path):
    pile = SOUP + TRAIN + FILM + ODD
    fitted = classifier(none="other").fit(pile)
    assert list(fitted.classes_) == ["film", "other", "soup", "train"]
    found = fitted.predict(pile)
    assert (found[-25:] == "other").mean() > 0.9
    assert (found[:90] != "other").mean() > 0.9
    proba = fitted.predict_proba(pile)
    assert proba.shape == (115, 4)
    assert proba.sum(axis=1) == pytest.approx(1)
    np.testing.assert_allclose(fitted.predict_proba(pile[:1])[0], proba[0], atol=1e-9)
    explained = fitted.explain(ODD[0])
    assert explained.label == "other"
    assert "other" not in explained.experts["encoder"]
    assert "other" in explained.experts["pile"]
    assert json.dumps(explained.to_dict())
    assert "other" in str(explained)
    fitted.save(tmp_path / "c.zicl-clf")
    loaded = zicl.load(tmp_path / "c.zicl-clf", encoder=WideEncoder())
    np.testing.assert_array_equal(loaded.predict_proba(pile), proba)
    assert loaded.fingerprint() == fitted.fingerprint()
    assert (classifier(none="other", threshold=1.0).fit(pile).predict(pile) != "other").mean() > 0.7


def test_gold_rows_may_be_of_no_label():
    pile = SOUP + TRAIN + FILM + ODD
    y = [None] * 90 + ["other"] * 5 + [None] * 20
    y[0] = y[30] = y[60] = None
    y[1], y[31], y[61] = "soup", "train", "film"
    found = classifier(none="other").fit(pile, y).predict(pile)
    assert (found[95:] == "other").mean() > 0.9


def test_several_labels_are_an_indicator_matrix(tmp_path):
    pile = SOUP + TRAIN + FILM + BOTH
    fitted = classifier(multi=True).fit(pile)
    found, proba = fitted.predict(pile), fitted.predict_proba(pile)
    assert found.shape == proba.shape == fitted.decision_function(pile).shape == (105, 3)
    assert set(found.ravel()) == {0, 1}
    # Columns are in alphabetical order: film, soup, train.
    truth = np.array([[0, 1, 0]] * 30 + [[0, 0, 1]] * 30 + [[1, 0, 0]] * 30 + [[0, 1, 1]] * 15)
    assert f1_score(truth, found, average="micro") > 0.75
    assert fitted.score(pile, truth) == pytest.approx((found == truth).all(axis=1).mean())
    assert get_tags(fitted).classifier_tags.multi_label
    assert not get_tags(classifier()).classifier_tags.multi_label
    fitted.save(tmp_path / "c.zicl-clf")
    np.testing.assert_array_equal(zicl.load(tmp_path / "c.zicl-clf", encoder=WideEncoder()).predict_proba(pile), proba)
    assert clone(fitted).multi
    assert (
        len(cross_val_score(classifier(multi=True), np.array(pile, dtype=object), truth, cv=3, scoring="f1_micro")) == 3
    )


def test_y_of_several_labels_is_read_in_every_form():
    pile = SOUP + TRAIN + FILM + BOTH
    sets = [("soup",)] + [None] * 89 + [("soup", "train")] + [None] * 14
    joined = ["soup"] + [""] * 89 + ["train|soup"] + [""] * 14
    matrix = np.full((105, 3), -1)
    matrix[0], matrix[90] = [0, 1, 0], [0, 1, 1]
    forms = (sets, joined, matrix, pd.Series(joined), pd.DataFrame(matrix), csr_matrix(matrix))
    fits = [classifier(multi=True).fit(pile, y).fitted_ for y in forms]
    assert all(fit == fits[0] for fit in fits)
    # A row of zeros says that a text has no label, which is not the same as nothing.
    empty = matrix.copy()
    empty[60:90] = 0
    without = classifier(multi=True).fit(pile, empty)
    assert without.fitted_ == classifier(multi=True).fit(pile, [*sets[:60], *[[]] * 30, *sets[90:]]).fitted_
    assert without.fitted_.pile.source != classifier(multi=True).fit(pile, matrix).fitted_.pile.source
    assert without.predict(FILM).sum() < classifier(multi=True).fit(pile).predict(FILM).sum()
    whole = np.array([[0, 1, 0]] * 30 + [[0, 0, 1]] * 30 + [[1, 0, 0]] * 30 + [[0, 1, 1]] * 15)
    assert classifier(multi=True).fit(pile, whole == 1).fitted_ == classifier(multi=True).fit(pile, whole).fitted_
    assert fits[0] != classifier(multi=True).fit(pile).fitted_
    with pytest.raises(LabelError, match="'stew'"):
        classifier(multi=True).fit(pile, ["stew"] + [None] * 104)
    with pytest.raises(LabelError, match="the row"):
        classifier(multi=True).fit(pile, np.full((105, 3), 2))
    with pytest.raises(LabelError, match="for one text"):
        classifier().fit(pile, sets)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"none": "soup"}, "one of the labels"),
        ({"none": " "}, "none is a name"),
        ({"none": "other", "multi": True}, "leave out none"),
        ({"multi": True, "threshold": 1.5}, "from 0 to 1"),
        ({"multi": True, "threshold": {"stew": 0.5}}, "'stew'"),
        ({"none": "other", "threshold": {"soup": 0.5}}, "one number for none"),
        ({"threshold": 0.5}, "neither is set"),
        ({"multi": True, "method": "encoder"}, "learned from a pile"),
        ({"none": "other", "method": "no-demos"}, "learned from a pile"),
        ({"multi": True, "pile": zicl.Pile(shares={"soup": 0.5, "train": 0.2, "film": 0.3})}, "exclude each other"),
        ({"multi": True, "labels": ["soup|stew", "train"]}, "cannot be one of several"),
        ({"none": "other", "pile": zicl.Pile(shares={"soup": 0.5, "train": 0.2, "film": 0.3})}, "other"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        classifier(**settings).fit(SOUP + TRAIN)


def test_a_decision_needs_a_pile_and_one_set_of_labels():
    with pytest.raises(ConfigError, match="no texts were given"):
        classifier(none="other").fit()
    with pytest.raises(ConfigError, match="too few"):
        classifier(multi=True).fit(SOUP[:5])
    with pytest.raises(ConfigError, match="differ from text to text"):
        ZICLClassifier(labels=3, encoder=WideEncoder(), multi=True).fit(SOUP)
    fitted = classifier(none="other").fit(SOUP + TRAIN + FILM)
    with pytest.raises(zicl.ZICLError, match="asks no language model"):
        zicl.distill(fitted, SOUP + TRAIN)
    with pytest.raises(ConfigError, match="one label"):
        zicl.suggest(fitted, SOUP + TRAIN)


def test_many_labels_and_a_small_pile_send_hardly_any_text_away():
    names = [f"{what}{n}" for n in range(10) for what in ("soup", "train")]
    pile = [f"A note on {name}, its {word} and its price." for name in names for word in ("colour", "weight", "smell")]
    fitted = ZICLClassifier(labels=names, encoder=WideEncoder(), none="other").fit(pile)
    assert (fitted.predict(pile) == "other").mean() < 0.2


def test_hashes_of_labels_hold_in_other_processes():
    labels = Labels.of(["soup", "train"])
    assert hash(labels) == hash(Labels.of(["soup", "train"]))
    assert "_hash" not in pickle.loads(pickle.dumps(labels)).__dict__


def test_shares_include_that_of_none():
    pile = SOUP + TRAIN + FILM + ODD
    shares = {"soup": 0.25, "train": 0.25, "film": 0.25, "other": 0.25}
    fitted = classifier(none="other", pile=zicl.Pile(shares=shares)).fit(pile)
    assert (fitted.predict(ODD) == "other").mean() > 0.9
