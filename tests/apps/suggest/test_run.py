"""Diagnoses from tiny models: which passes are made, and which signals there are."""

import pytest

from tests.conftest import DOCUMENTS, make_index
from zicl.apps.suggest.run import SEEDS, sample_texts, suggest
from zicl.classifier import ZICLClassifier
from zicl.config import Labelling, PromptSettings, Retrieval, Scoring
from zicl.exceptions import ConfigError, TextError

LABELS = ["terrible", "great"]
TEXTS = [f"Take {n}. {text}" for n, text in enumerate(DOCUMENTS)]
K = Retrieval(k=3)
DRAWN = Retrieval(k=3, method="diverse", pool=8)
SHUFFLED = Retrieval(k=3, order="shuffled")


def by_name(found):
    return {signal.name: signal for signal in found.signals}


@pytest.fixture
def scored(monkeypatch, lm):
    """Collect the number of prompts of each call of the language model."""
    calls, real = [], type(lm).score

    def score(self, prompts, progress=None):
        calls.append(len(prompts))
        return real(self, prompts, progress)

    monkeypatch.setattr(type(lm), "score", score)
    return calls


def test_every_pass_is_made_once(index, lm, scored):
    classifier = ZICLClassifier(index, LABELS, lm, retrieval=K, method="z-icl").fit()
    scored.clear()
    stages = []
    found = suggest(classifier, TEXTS * 2, sample=6, report=lambda stage, *_: stages.append(stage))
    assert scored == [6] * (SEEDS + 1)
    assert (found.texts, found.distinct, found.sampled) == (20, 10, 6)
    assert list(dict.fromkeys(stages)) == [
        "searching the corpus",
        *(f"asking the language model: channel, seed {seed}" for seed in range(3)),
        "asking the language model: direct, seed 0",
    ]
    assert [signal.name for signal in found.signals] == [
        "similarity to the corpus",
        "texts far from the corpus",
        "nearest sentences that stand alone",
        "evenness of the labels, channel",
        "largest share of a label, channel",
        "evenness of the labels, direct",
        "largest share of a label, direct",
        "same label under another seed",
        "same label from channel and direct",
        "texts cut at the token limit",
        "demonstrations dropped",
        "texts with a small margin",
    ]


def test_the_signals_are_those_of_the_classifiers_predictions(index, lm):
    classifier = ZICLClassifier(index, LABELS, lm, retrieval=K, seed=4, method="z-icl").fit()
    found = by_name(suggest(classifier, TEXTS, sample=10))
    results = classifier.classify(sorted(TEXTS))
    share = sum(result.probabilities["great"] for result in results) / len(results)
    assert found["largest share of a label, channel"].value == pytest.approx(max(share, 1 - share), abs=1e-4)
    assert found["texts with a small margin"].value == sum(result.margin < 0.1 for result in results) / 10
    direct = ZICLClassifier(
        index, LABELS, lm, retrieval=K, seed=4, scoring=Scoring(inference="direct"), method="z-icl"
    ).fit()
    same = [one.label == two.label for one, two in zip(results, direct.classify(sorted(TEXTS)), strict=True)]
    assert found["same label from channel and direct"].value == pytest.approx(sum(same) / 10)
    # No text is a document of the corpus here, so its nearest sentence is the first of the search.
    nearest = sorted(next(index.nearest(text)).similarity for text in TEXTS)
    assert found["similarity to the corpus"].value == pytest.approx((nearest[4] + nearest[5]) / 2)


def test_the_order_of_the_texts_changes_nothing_and_the_seed_decides(index, lm):
    classifier = ZICLClassifier(index, LABELS, lm, retrieval=K, method="z-icl").fit()
    assert suggest(classifier, TEXTS, sample=6) == suggest(classifier, TEXTS[::-1], sample=6)
    distinct = [str(n) for n in range(100)]
    assert sample_texts(distinct, 10, 0) == sample_texts(distinct, 10, 0) != sample_texts(distinct, 10, 1)
    assert len(set(sample_texts(distinct, 10, 0))) == 10
    assert sample_texts(distinct, 200, 0) == distinct


def test_settings_that_would_hide_a_signal_are_left_out(index, lm):
    bare = ZICLClassifier(index, LABELS, lm, retrieval=K, method="z-icl").fit()
    full = ZICLClassifier(
        index,
        LABELS,
        lm,
        retrieval=K,
        calibrate="contextual",
        labelling=Labelling(assignments=2),
        scoring=Scoring(inference="both", experts=("prompt", "cosine")),
        method="z-icl",
    ).fit()
    assert suggest(full, TEXTS, sample=6) == suggest(bare, TEXTS, sample=6)


def test_a_direct_classifier_is_run_direct_under_all_seeds(index, lm, scored):
    classifier = ZICLClassifier(
        index, LABELS, lm, retrieval=K, scoring=Scoring(inference="direct"), method="z-icl"
    ).fit()
    stages = []
    suggest(classifier, TEXTS, sample=5, report=lambda stage, *_: stages.append(stage))
    assert sum("direct" in stage for stage in dict.fromkeys(stages)) == 3


@pytest.mark.parametrize(
    ("settings", "drawn", "option"),
    [
        ({}, "labels", "assignments"),
        ({"retrieval": DRAWN}, "labels, sentences", "assignments"),
        ({"retrieval": DRAWN, "labelling": Labelling(seed=4)}, "sentences", "physical"),
        ({"retrieval": SHUFFLED, "labelling": Labelling(words="none")}, "order", "order=nearest-last"),
    ],
)
def test_the_random_parts_are_named(index, lm, settings, drawn, option):
    clf = ZICLClassifier(
        index, {"terrible": "bad", "great": "good"}, lm, **{"method": "z-icl", "retrieval": Retrieval(k=3), **settings}
    )
    (signal,) = [s for s in suggest(clf.fit(), DOCUMENTS, sample=6).signals if "another seed" in s.name]
    assert f"({drawn})" in signal.meaning
    assert option in signal.option


def test_labels_with_a_fixed_seed_leave_nothing_to_draw(index, lm, scored):
    labelling = Labelling(seed=4)
    clf = ZICLClassifier(
        index, {"terrible": "bad", "great": "good"}, lm, retrieval=Retrieval(k=3), labelling=labelling, method="z-icl"
    )
    found = suggest(clf.fit(), DOCUMENTS, sample=6)
    assert not [s for s in found.signals if "another seed" in s.name]


def test_without_demonstrations_there_is_no_corpus_and_no_draw(lm, scored):
    found = by_name(suggest(ZICLClassifier(None, LABELS, lm, method="no-demos").fit(), TEXTS, sample=5))
    assert scored[-2:] == [5, 5]
    assert len(found) == 7
    assert not {"similarity to the corpus", "same label under another seed", "demonstrations dropped"} & set(found)


def test_neighbours_matter_only_where_they_are_shown(index, lm):
    found = by_name(suggest(ZICLClassifier(index, LABELS, lm, method="naive", retrieval=K).fit(), TEXTS, sample=5))
    assert "similarity to the corpus" in found
    assert "nearest sentences that stand alone" not in found


def test_texts_that_joined_the_corpus_are_searched_too(index, lm):
    def similarity(retrieval, fitted):
        classifier = ZICLClassifier(index, LABELS, lm, retrieval=retrieval, method="z-icl").fit(fitted)
        return by_name(suggest(classifier, strange, sample=5))["similarity to the corpus"].value

    # Nothing of the corpus is like them, and each is like the others.
    strange = [f"Zebras quarrel over quince marmalade, part {n}." for n in range(6)]
    joined = Retrieval(k=3, include_fit_texts=True)
    assert similarity(joined, strange) > similarity(K, None) + 0.1


def test_one_sentence_paragraphs_and_tight_limits_are_seen(tmp_path, lm):
    lines = tmp_path / "raw.jsonl"
    sentences = [text for document in DOCUMENTS for text in document.split(". ")]
    lines.write_text("".join(f'{{"text": "{text}"}}\n' for text in [*sentences, *DOCUMENTS]), encoding="utf-8")
    prompt = PromptSettings(tokens_input=4, tokens_all_demos=40)
    classifier = ZICLClassifier(
        make_index(tmp_path / "raw.zicl", lines), LABELS, lm, retrieval=K, prompt=prompt, method="z-icl"
    )
    found = by_name(suggest(classifier.fit(), TEXTS, sample=8))
    assert found["nearest sentences that stand alone"].value > 0
    assert found["texts cut at the token limit"].value == 1
    assert found["texts cut at the token limit"].level == "warn"
    assert found["demonstrations dropped"].value > 0


def test_a_fitted_classifier_is_not_changed(index, lm):
    classifier = ZICLClassifier(index, LABELS, lm, retrieval=K, calibrate="batch", method="z-icl").fit(TEXTS)
    before = classifier.classify(TEXTS[:2])
    suggest(classifier, TEXTS, sample=5)
    assert [r.probabilities for r in classifier.classify(TEXTS[:2])] == [r.probabilities for r in before]


def test_bad_input_is_named(index, lm):
    classifier = ZICLClassifier(index, LABELS, lm, retrieval=K, method="z-icl").fit()
    with pytest.raises(
        TextError, match="2 different texts were given, and the sample is 40; expected at least 5 of each"
    ):
        suggest(classifier, [*TEXTS[:2], TEXTS[0] + " "])
    with pytest.raises(TextError, match="row 1 is empty"):
        suggest(classifier, ["fine", " "])
    with pytest.raises(ConfigError, match="the options differ from text to text"):
        suggest(ZICLClassifier(index, 2, lm, retrieval=K, method="z-icl").fit(), TEXTS)
