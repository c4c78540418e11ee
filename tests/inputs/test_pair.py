"""Pairs of texts, and options that differ from text to text, through the classifier."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zicl import Labelling, PromptSettings, Retrieval, Scoring, ZICLClassifier
from zicl.exceptions import ConfigError, LabelError, TextError, UsageError
from zicl.inputs.pair import Pair, text_key, text_parts
from zicl.prompt.labels import Labels, read_labels
from zicl.prompt.template import Template

PAIRS = [("The soup was cold.", "Nobody ate it."), ("She sang.", "The room was silent.")]
ENTAILED = PromptSettings(template=("Premise: {first}\nHypothesis: {second}", "So: {label}"))


@given(st.text(alphabet="ab c"), st.text(alphabet="ab c"))
def test_the_parts_of_a_pair(first, second):
    pair = Pair(first, second).strip()
    assert text_parts(pair) == (first.strip(), second.strip())
    assert str(pair) == f"{first.strip()} {second.strip()}"
    assert text_parts(first) == (first,)


@given(st.tuples(*[st.text(alphabet="ab c")] * 2), st.tuples(*[st.text(alphabet="ab c")] * 2))
def test_the_key_of_a_pair_is_unique(one, other):
    assert (text_key(Pair(*one)) == text_key(Pair(*other))) == (one == other)
    assert text_key(one[0]) == one[0]


def test_a_template_of_two_fields():
    template = Template("A: {second}; B: {first}", "{label}")
    assert template.input_line(Pair("{second}", "x")) == "A: x; B: {second}"
    with pytest.raises(ConfigError, match=re.escape("{first} and {second} exactly once")):
        Template("A: {first}", "{label}")


@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_a_demonstration_is_a_sentence_with_its_neighbour(index, lm, inference):
    clf = ZICLClassifier(
        index, ["yes", "no"], lm,
        retrieval=Retrieval(k=3), labelling=Labelling(words="original"), prompt=ENTAILED,
        scoring=Scoring(inference=inference), method="z-icl",
    ).fit()  # fmt: skip
    result = clf.classify(PAIRS)[0]
    prompt = result.prepared.prompt
    for demo in result.prepared.demos:
        first, second = sorted((demo.nearest, demo.sentence), key=lambda sentence: sentence.row)
        assert second.row == first.row + 1
        assert f"Premise: {first.text}\nHypothesis: {second.text}" in prompt.prefix.text
    with torch.inference_mode():
        expected = [float(row.sum()) for row in lm.forward.plain(prompt)]
    assert [score.log_likelihood for score in result.scores] == pytest.approx(expected, abs=1e-4)


def test_a_long_pair_loses_tokens_of_its_longer_half(index, lm):
    prompt = PromptSettings(template=ENTAILED.template, tokens_input=20)
    clf = ZICLClassifier(None, ["yes", "no"], lm, method="no-demos", prompt=prompt).fit()
    built = clf.pipeline_.prepare(Pair("The soup. " * 30, "Cold.")).prompt
    assert built.input_cut
    assert "Hypothesis: Cold." in built.text(0)


def test_a_pair_needs_a_template_for_pairs(index, lm):
    single = ZICLClassifier(None, ["yes", "no"], lm, method="no-demos").fit()
    with pytest.raises(TextError, match="a pair of texts needs a template"):
        single.classify(PAIRS)
    double = ZICLClassifier(index, ["yes", "no"], lm, method="naive", retrieval=Retrieval(k=2), prompt=ENTAILED).fit()
    with pytest.raises(TextError, match="a pair of texts needs a template"):
        double.classify(["one text"])
    with pytest.raises(ConfigError, match="physical neighbour"):
        double.classify(PAIRS)


# -- options ---------------------------------------------------------------------------------------------


def write(folder, labels):
    (folder / "labels.toml").write_text(labels.to_toml())
    return folder / "labels.toml"


def test_counted_labels_take_the_words_of_a_text(tmp_path):
    labels = Labels.of(4)
    assert labels.names == ("1", "2", "3", "4")
    assert labels.among(["a", "b", "c"]).words == ("a", "b", "c")
    assert Labels.of(["x", "y", "z"]).among(["z", "x"]).names == ("x", "z"), "in the order of the labels"
    with pytest.raises(LabelError, match="'q', which is no label"):
        Labels.of(["x", "y"]).among(["x", "q"])
    assert labels.among(["2", "3", "1"]).words == ("2", "3", "1"), "options that look like numbers keep their places"
    assert read_labels(write(tmp_path, labels)) == labels
    with pytest.raises(LabelError, match="5 options, the labels count 4"):
        labels.among(["a", "b", "c", "d", "e"])


@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_options_are_scored_and_demonstrations_have_sentences_near_them_as_answers(index, lm, inference):
    clf = ZICLClassifier(
        index, 3, lm,
        retrieval=Retrieval(k=3), labelling=Labelling(words="neighbours"), prompt=PromptSettings(template="choice"),
        scoring=Scoring(inference=inference), method="z-icl",
    ).fit()  # fmt: skip
    texts = ["The soup was cold.", "The lamp failed."]
    options = [["I sent it back.", "The bird sang.", "A pear fell."], ["It was dark.", "She laughed."]]
    results = clf.classify(texts, options=options)
    assert [len(result.scores) for result in results] == [3, 2]
    for result, choices in zip(results, options, strict=True):
        prompt = result.prepared.prompt
        with torch.inference_mode():
            expected = [float(row.sum()) for row in lm.forward.plain(prompt)]
        assert [score.log_likelihood for score in result.scores] == pytest.approx(expected, abs=1e-4)
        assert all(option in prompt.text(n) for n, option in enumerate(choices))
        for demo in result.prepared.demos:
            near = [index.sentence(row).text for row in index.around(demo.sentence.row, 3)]
            assert demo.words in near


def test_a_sentence_too_long_for_an_answer_is_cut(index, lm):
    clf = ZICLClassifier(
        index, 2, lm,
        retrieval=Retrieval(k=3), prompt=PromptSettings(template="choice", tokens_per_demo=36), method="z-icl",
    ).fit()  # fmt: skip
    (result,) = clf.classify(["The soup was cold."], options=[["I sent it back.", "The bird sang."]])
    assert result.prepared.prompt.kept == 3
    for demo in result.prepared.demos:
        near = [index.sentence(row).text for row in index.around(demo.sentence.row, 3)]
        assert any(sentence.startswith(demo.words) for sentence in near)
        assert len(lm.tokenizer.encode(demo.words)) <= 18


def test_counted_labels_need_options(index, lm):
    clf = ZICLClassifier(
        index, 3, lm, retrieval=Retrieval(k=2), prompt=PromptSettings(template="choice"), method="z-icl"
    )
    with pytest.raises(ConfigError, match="no text's options were given"):
        clf.fit().predict(["The soup was cold."])
    with pytest.raises(ConfigError, match="no text's options were given"):
        ZICLClassifier(index, 3, lm, retrieval=Retrieval(k=2), calibrate="batch", method="z-icl").fit(
            ["The soup was cold."]
        )
    with pytest.raises(UsageError, match="1 text was given, and options for 2"):
        clf.classify(["The soup was cold."], options=[["a", "b"], ["c", "d"]])


def test_rows_may_have_some_of_the_labels(index, lm):
    labels = {"terrible": "bad", "okay": "fine", "great": "good"}
    clf = ZICLClassifier(index, labels, lm, retrieval=Retrieval(k=6), method="z-icl").fit()
    results = clf.classify(["The soup was cold."] * 2, options=[["great", "terrible"], ["okay", "great"]])
    assert [set(result.probabilities) for result in results] == [{"great", "terrible"}, {"okay", "great"}]
    for result in results:
        assert {demo.label for demo in result.prepared.demos} <= set(result.probabilities)


def test_fitted_priors_need_all_labels(index, lm):
    texts = ["The soup was cold.", "She sang like a bird.", "The train was slow."]
    clf = ZICLClassifier(index, ["bad", "good", "fine"], lm, method="no-demos", calibrate="batch").fit(texts)
    with pytest.raises(ConfigError, match="only some of them"):
        clf.classify(texts, options=[["bad", "good"]] * 3)
    assert np.isfinite([[s.value for s in r.scores] for r in clf.classify(texts)]).all()
