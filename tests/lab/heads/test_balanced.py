"""Heads are found on prompts that show every label as often, in random order."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import BagEncoder
from zicl.exceptions import RetrievalError
from zicl.lab.evaluate.examples import Example
from zicl.lab.evaluate.training import TrainingIndex
from zicl.lab.heads.find import NearestPerLabel
from zicl.retrieve.strategies.base import Query
from zicl.retrieve.strategies.nearest import Nearest


def training(labels):
    encoder = BagEncoder()
    examples = [Example(str(n), f"soup number {n} of {label}", label) for n, label in enumerate(labels)]
    return TrainingIndex("Soup", examples, encoder, lambda text: encoder.encode([text])[0])


@given(st.lists(st.sampled_from("abc"), max_size=20), st.integers(1, 3))
def test_as_many_of_each_label_and_the_nearest_of_each(more, each):
    labels = ["a", "b", "c"] * each + more
    index, query = training(labels), Query("soup of a")
    found = NearestPerLabel(tuple(labels)).retrieve(index, query, 3 * each)
    assert Counter(labels[item.row] for item in found) == {"a": each, "b": each, "c": each}
    assert [item.similarity for item in found] == sorted((item.similarity for item in found), reverse=True)
    every = Nearest().retrieve(index, query, len(labels))
    for label in "abc":
        first = [item.row for item in every if labels[item.row] == label][:each]
        assert [item.row for item in found if labels[item.row] == label] == first


def test_a_label_with_too_few_examples_is_named():
    with pytest.raises(RetrievalError, match="of 'b' there are 1 examples"):
        NearestPerLabel(("a", "a", "a", "b")).retrieve(training(["a", "a", "a", "b"]), Query("soup"), 4)
