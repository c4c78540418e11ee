"""Learning from a pile through the classifier: gaps in y, warnings, budgets, and what is stored."""

import itertools
import json
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score

import zicl
from tests.conftest import BagEncoder, BatchDependentEncoder
from zicl import Labels, Pile, PromptSettings, Scoring, ZICLClassifier
from zicl.classifier import LocalFit
from zicl.exceptions import ConfigError, LabelError, PileWarning, StorageError, TextError, UsageError
from zicl.retrieve.encoder import DEFAULT_ENCODER
from zicl.score.fit import least_certain, sample_pile
from zicl.score.pile import SHARPNESS, fit_pile

LABELS = {"soup": ["broth"], "train": ["railway"]}
# Written for this project: sixty different texts, half about soup and half about trains.
PILE = [f"The soup number {n} was hot, a broth with bread and salt." for n in range(30)]
PILE += [f"The train number {n} was late, a railway with rails and smoke." for n in range(30)]
TRUTH = ["soup"] * 30 + ["train"] * 30


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))


def classifier(**settings):
    return ZICLClassifier(labels=LABELS, encoder=BagEncoder(), **settings)


def test_the_default_learns_from_the_pile_and_asks_no_language_model():
    fitted = classifier().fit(PILE)
    assert fitted.lm_ is None
    assert fitted.pipeline_ is None
    assert (fitted.predict(PILE) == TRUTH).mean() > 0.9
    assert fitted.predict_proba(PILE).sum(axis=1) == pytest.approx(1)
    assert fitted.fitted_.pile.texts == 60
    assert "pile" in fitted.explain(PILE[0]).experts


def test_from_texts_is_the_same_pile():
    made = ZICLClassifier.from_texts(PILE, LABELS, encoder=BagEncoder()).fit()
    assert made.fitted_ == classifier().fit(PILE).fitted_


def test_order_and_duplicates_of_the_pile_play_no_role():
    once = classifier().fit(PILE)
    assert classifier().fit(PILE[::-1] * 2).fitted_ == once.fitted_
    alone = np.concatenate([once.predict_proba([text]) for text in PILE[:5]])
    np.testing.assert_allclose(once.predict_proba(PILE)[:5], alone, atol=1e-9)


def test_without_texts_the_encoder_answers_alone():
    alone = classifier().fit().classify(PILE[:3])
    expected = classifier(method="encoder").fit().classify(PILE[:3])
    assert [r.scores for r in alone] == [r.scores for r in expected]


def test_a_saved_classifier_says_the_same(encoder_folder, tmp_path):
    made = ZICLClassifier(labels=LABELS, encoder=str(encoder_folder)).fit(PILE)
    folder = made.save(tmp_path / "c.zicl-clf")
    again = zicl.load(folder)
    assert again.fitted_ == made.fitted_
    assert again.fingerprint() == made.fingerprint()
    np.testing.assert_allclose(again.predict_proba(PILE), made.predict_proba(PILE), atol=1e-6)
    (folder / "pile.safetensors").write_bytes(b"other")
    with pytest.raises(StorageError, match="not what was written"):
        zicl.load(folder)


def test_what_is_fitted_is_not_encoded_again_whatever_is_asked_next():
    encoder = BatchDependentEncoder()
    made = classifier().set_params(encoder=encoder).fit(PILE)
    assert sum(text in set(PILE) for text in encoder.encoded) == 60
    new = ["The bread was hot.", "The ship was late."]
    probabilities = made.predict_proba([*PILE, *new])
    assert sum(text in {*PILE, *new} for text in encoder.encoded) == 62
    made.predict([*PILE, *new])
    made.predict(PILE[::-1])
    ZICLClassifier(labels=["hot", "late"], encoder=encoder).fit(PILE, ["hot", *[None] * 59])
    assert sum(text in {*PILE, *new} for text in encoder.encoded) == 62
    # Every number is the same after whatever else was asked of the encoder.
    used = BatchDependentEncoder()
    other = ZICLClassifier(labels=["hot", "late"], encoder=used, method="encoder").fit()
    other.predict([*PILE[3:20], *new[:1]])
    again = classifier().set_params(encoder=used).fit(PILE)
    np.testing.assert_array_equal(again.predict_proba([*PILE, *new]), probabilities)


# -- labels where there are some ---------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [None, float("nan"), -1, "", np.float64("nan")])
def test_y_may_have_gaps(gap):
    y = [*TRUTH[:2], *[gap] * 56, *TRUTH[-2:]]
    assert (classifier().fit(PILE, y).predict(PILE) == TRUTH).all()
    assert (classifier().fit(PILE, np.array(y, dtype=object)).predict(PILE) == TRUTH).all()


def test_gold_labels_change_the_fit_and_no_labels_do_not():
    plain = classifier().fit(PILE)
    assert classifier().fit(PILE, [None] * 60).fitted_ == plain.fitted_
    # Against what the words say: that is what was taught.
    swapped = ["train" if label == "soup" else "soup" for label in TRUTH]
    assert (classifier().fit(PILE, swapped).predict(PILE) == TRUTH).mean() < 0.2


def test_a_text_with_two_labels_counts_as_unlabelled():
    with pytest.warns(PileWarning, match="1 text has two different labels"):
        made = classifier().fit([*PILE, PILE[0]], ["train", *[None] * 59, "soup"])
    assert made.fitted_ == classifier().fit(PILE).fitted_


@pytest.mark.parametrize(
    ("texts", "y", "message"),
    [
        (PILE, ["soup", "boat", *[None] * 58], "'boat'"),
        (PILE, ["soup"], "60 texts were given, and 1 label"),
        (None, ["soup"], "labels were given without texts"),
    ],
)
def test_wrong_labels_are_named(texts, y, message):
    with pytest.raises((LabelError, UsageError), match=message):
        classifier().fit(texts, y)


def test_cross_validation_and_clone_work():
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(classifier(), np.array(PILE), np.array(TRUTH), cv=folds, error_score="raise")
    assert scores.mean() > 0.9
    assert clone(classifier(seed=3)).get_params()["seed"] == 3


# -- piles that say little ---------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [PILE[:5], [PILE[0]] * 500, []])
def test_a_pile_that_is_too_small_is_said(texts):
    with pytest.warns(PileWarning, match="too few to learn from, 20 are needed"):
        made = classifier().fit(texts)
    assert made.fitted_.pile is None
    assert made.predict(PILE[:1]).shape == (1,)


def test_no_pile_is_the_encoder_alone_and_nothing_to_warn_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = classifier().fit(None)
    assert made.fitted_.pile is None
    assert made.predict(PILE[:1]).shape == (1,)


def test_one_label_that_attracts_everything_is_said():
    with pytest.warns(PileWarning, match="'soup' gets 100% of the texts"):
        ZICLClassifier(labels=["soup", "quantum physics"], encoder=BagEncoder()).fit(
            [f"soup {'soup ' * n}" for n in range(1, 41)]
        )


def test_letters_that_the_default_encoder_does_not_know_are_said():
    class Default(BagEncoder):
        name = DEFAULT_ENCODER

    with pytest.warns(PileWarning, match="not in Latin letters"):
        classifier().set_params(encoder=Default()).fit([f"суп номер {n} был горячим" for n in range(40)])


def test_a_sample_keeps_every_gold_row():
    gold = {PILE[n]: "soup" for n in range(5)}
    chosen = sample_pile(PILE, gold, 20, seed=1)
    assert set(gold) < set(chosen)
    assert len(chosen) == len(set(chosen)) == 20
    assert chosen == sample_pile(PILE[::-1], gold, 20, seed=1) != sample_pile(PILE, gold, 20, seed=2)


# -- known shares -------------------------------------------------------------------------------------------


def test_known_shares_are_checked_and_used():
    made = classifier(pile=Pile(method="mixture", shares={"soup": 0.9, "train": 0.1})).fit(PILE)
    assert made.fitted_.pile.shares == pytest.approx((0.9, 0.1))
    with pytest.raises(ConfigError, match="the shares name boat"):
        classifier(pile=Pile(method="mixture", shares={"boat": 0.9, "soup": 0.1})).fit(PILE)


def test_known_shares_count_where_the_pile_does_not():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(200, 64)).astype(np.float32)
    model = fit_pile(vectors, 0.1 * generator.normal(size=(200, 2)), shares=np.array([0.9, 0.1]))
    silent = replace(model, stability=0.0)
    assert silent.weight == 0
    added = silent.scores(vectors[:1])[0]
    assert added[0] - added[1] == pytest.approx(SHARPNESS * np.log(9))


@pytest.mark.parametrize("settings", [{"pile": Pile(shares={"soup": 0.9, "train": 0.1})}, {"pile": Pile(lm_rows=5)}])
def test_what_needs_texts_is_refused_without_any(lm, settings):
    with pytest.raises(ConfigError, match="fit\\(\\) was given none"):
        classifier(lm=lm, **settings).fit()


@pytest.mark.parametrize("calibrate", ["batch", "neutral", "contextual"])
def test_calibration_of_an_encoder_alone_is_refused(calibrate):
    with pytest.raises(ConfigError, match="has subtracted its bias already"):
        classifier(calibrate=calibrate).fit(PILE)


# An untrained model may say the same of every text.
@pytest.mark.filterwarnings("ignore::zicl.exceptions.PileWarning")
def test_pairs_are_learned_from_too(lm):
    pairs = [(text, "It is about food.") for text in PILE]
    assert classifier().fit(pairs).predict(pairs[:2]).shape == (2,)
    asked = classifier(lm=lm, pile=Pile(lm_rows=4), prompt=PromptSettings(template="pair")).fit(pairs)
    assert asked.settings_.pile.lm_rows == 4
    with pytest.raises(TextError, match="a pair of texts needs a template"):
        classifier(lm=lm, pile=Pile(lm_rows=4)).fit(pairs)


def test_a_missing_value_of_pandas_is_a_gap():
    y = pd.Series(["soup", *[pd.NA] * 59], dtype="string")
    assert classifier().fit(PILE, y).fitted_.pile.texts == 60


@pytest.mark.parametrize("wrong", [{"soup": 0.9, "train": 0.3}, {"soup": 1.0, "train": 0.0}])
def test_shares_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="share"):
        Pile(method="mixture", shares=wrong)


# -- the language model, asked about some texts --------------------------------------------------------------


class CountingLM:
    """The language model, with the number of prompts that it scored."""

    def __init__(self, lm):
        self.lm, self.asked = lm, 0

    def __getattr__(self, name):
        return getattr(self.lm, name)

    def score(self, prompts, progress=None):
        self.asked += len(prompts)
        return self.lm.score(prompts, progress)


def test_a_budget_of_none_is_the_cheap_experts(lm):
    assert classifier(lm=lm, pile=Pile(method="mixture", lm_rows=0)).fit(PILE).fitted_ == classifier().fit(PILE).fitted_


def test_answers_are_stored_and_never_asked_twice(lm, tmp_path):
    counting = CountingLM(lm)
    few = classifier(lm=counting, pile=Pile(lm_rows=8), method="z-icl+").fit(PILE)
    first = counting.asked
    # Sixteen sentences without content, and the eight texts.
    assert first == 24
    assert few.settings_.pile.lm_rows == 8
    assert few.lm_ is None
    again = classifier(lm=counting, pile=Pile(lm_rows=8), method="z-icl+").fit(PILE)
    assert again.fitted_ == few.fitted_
    assert counting.asked == first + 16
    classifier(lm=counting, pile=Pile(lm_rows=12), method="z-icl+").fit(PILE)
    assert counting.asked == first + 2 * 16 + 4
    (stored,) = (tmp_path / "home" / "answers").glob("*.jsonl")
    entries = [json.loads(line) for line in stored.read_text().splitlines() if line]
    assert len(entries) == 12
    assert set(entries[0]) == {"text", "scores"}
    assert PILE[0] not in stored.read_text()


def test_a_killed_run_keeps_the_answers_it_has(lm, tmp_path):
    made = classifier(lm=lm, pile=Pile(lm_rows=8), method="z-icl+").fit(PILE)
    (stored,) = (tmp_path / "home" / "answers").glob("*.jsonl")
    whole = stored.read_text()
    stored.write_text(whole[: len(whole) // 2])
    assert classifier(lm=lm, pile=Pile(lm_rows=8), method="z-icl+").fit(PILE).fitted_ == made.fitted_


def test_a_time_budget_becomes_a_number_that_is_kept(lm):
    first = classifier(lm=lm).fit(PILE, budget=0.5)
    assert 0 <= first.settings_.pile.lm_rows <= 60
    again = classifier(lm=lm).fit(PILE, budget=0.5)
    assert again.fingerprint() == first.fingerprint()


# An untrained model may say the same of every text.
@pytest.mark.filterwarnings("ignore::zicl.exceptions.PileWarning")
def test_a_time_budget_is_that_of_all_workers(lm, monkeypatch):
    class TwoWorkers(LocalFit):
        workers = 2

    # Every look at the clock is a second later: 16 texts a second by one worker.
    monkeypatch.setattr("zicl.score.fit.time", SimpleNamespace(monotonic=itertools.count().__next__))
    assert classifier(lm=lm).fit(PILE, budget=1, compute=TwoWorkers()).settings_.pile.lm_rows == 32


def test_the_least_certain_texts_are_asked_first_whatever_the_last_digits():
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(60, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    answers, gold = generator.normal(size=(60, 2)), np.full(60, -1)
    gold[7] = 1
    model = fit_pile(vectors, answers, gold=gold)
    order = least_certain(model, answers, vectors, PILE, gold >= 0)
    # What is known is not asked.
    assert sorted(order.tolist()) == [n for n in range(60) if n != 7]
    assert (least_certain(model, answers + 1e-7, vectors, PILE, gold >= 0) == order).all()


def test_experts_that_ask_the_language_model_say_their_cost(lm):
    made = classifier(lm=lm, scoring=Scoring(experts=("encoder", "direct")), method="encoder", calibrate="neutral")
    made.fit()
    assert made.ensemble_.costs == {
        "direct": "one prompt of tiny-llama without demonstrations",
        "encoder": "one encoding by bag",
    }
    result = made.classify(PILE[:1])[0]
    assert list(result.terms) == ["direct", "encoder"]
    assert list(made.fitted_.priors) == ["direct"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scoring": Scoring(experts=("direct",))}, "no expert uses one"),
        ({"labels": 3}, "the options differ from text to text"),
    ],
)
def test_settings_that_contradict_a_pile_are_refused(lm, settings, message):
    with pytest.raises(ConfigError, match=message):
        classifier(lm=lm).set_params(**settings).fit(PILE)


def test_warnings_are_no_errors_for_a_pile_without_them():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier().fit(PILE)
    assert Labels.of(LABELS).names == ("soup", "train")
