"""Controls: what they predict from, and that they predict from nothing else."""

from collections import Counter

import numpy as np
import pytest

from tests.conftest import BagEncoder
from zicl.exceptions import ConfigError, LabelError
from zicl.lab.evaluate import controls
from zicl.lab.evaluate.examples import Example
from zicl.lab.evaluate.training import TrainingIndex
from zicl.prompt.labels import Label, Labels

LABELS = Labels((Label("bad", description="It was cold."), Label("good", description="It was warm.")))


def embed(text):
    return BagEncoder().encode([text])[0]


def training(labels="bad good bad good"):
    examples = [Example(str(n), f"day {n} was {label}", label) for n, label in enumerate(labels.split())]
    return TrainingIndex("days", examples, BagEncoder, embed)


def test_majority_is_the_most_frequent_label():
    examples = [Example("1", "x", "good"), Example("2", "y", "bad"), Example("3", "z", "good")]
    counts = Counter(example.label for example in examples)
    assert np.exp(controls.majority(counts, LABELS)) == pytest.approx([1 / 3, 2 / 3])


def test_cosine_of_a_label_to_itself_is_one():
    scores = controls.cosine(["bad", "good"], LABELS.words, embed)
    assert scores.diagonal() == pytest.approx([1, 1])


def test_logistic_regression_reads_the_examples_that_icl_gold_shows():
    index = training("bad good bad good bad good bad good")
    rows = controls.gold_rows(index, 4, seed=3)
    assert len(set(rows)) == 4
    assert rows != controls.gold_rows(index, 4, seed=4)
    scores = controls.logistic(["day 1 was good"], index, LABELS, 8, 3, embed)
    assert np.exp(scores).sum() == pytest.approx(1)
    assert scores[0, 1] > scores[0, 0]


def test_one_class_among_the_gold_examples_is_all_it_can_say():
    scores = controls.logistic(["anything"], training("good good good"), LABELS, 2, 0, embed)
    assert scores.tolist() == [[-np.inf, 0.0]]


def test_descriptions_that_are_missing_are_named():
    with pytest.raises(LabelError, match="the labels fine have no description"):
        controls.descriptions("days", Labels((Label("bad", description="x"), Label("fine"))))


def test_an_instruction_needs_a_chat_template(lm):
    with pytest.raises(ConfigError, match="no chat template"):
        controls.instruction("It was warm.", LABELS, lm, 64)


def test_an_instruction_is_what_the_chat_template_makes_of_it():
    from tests.conftest import tiny_lm

    model = tiny_lm()
    model.tokenizer._tokenizer.chat_template = "{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}"
    prompt = controls.instruction("It was warm.", LABELS, model, 64)
    shown = model.tokenizer.decode(prompt.stem.tokens)
    assert shown.startswith("<s>Which label fits")
    assert "bad, good" in shown
    assert shown.endswith("It was warm.</s>")
    assert [model.tokenizer.decode(b.scored.tokens) for b in prompt.branches] == ["bad", "good"]
    assert not prompt.input_cut
    assert controls.instruction("warm " * 90, LABELS, model, 20).input_cut
    assert len(model.score([prompt])[0]) == 2
