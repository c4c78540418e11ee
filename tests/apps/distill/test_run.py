"""Distilling: its origin, its draws and its checks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.apps.distill.conftest import SENTENCES
from zicl import ZICLClassifier
from zicl.apps.distill.run import distill, split_rows
from zicl.exceptions import ConfigError, TextError


def test_the_origin_is_recorded(made, teacher):
    origin = made.origin
    assert (origin.texts, origin.distinct, origin.sample) == (31, 30, 20)
    assert (origin.trained, origin.agreement.rows) == (16, 4)
    assert origin.lm == "tiny-llama"
    assert origin.teacher["lm"] == teacher.lm_.identity
    assert origin.teacher["retrieval"]["k"] == 2
    assert made.encoder is teacher.index_.encoder


def test_the_order_of_the_texts_changes_nothing(made, teacher):
    again = distill(teacher, SENTENCES[::-1], sample=20)
    assert again.linear.identity == made.linear.identity
    other = distill(teacher.set_params(seed=1).fit(), SENTENCES, sample=20)
    assert other.linear.identity != made.linear.identity


def test_options_that_differ_from_text_to_text_cannot_be_distilled(index, lm):
    with pytest.raises(ConfigError, match="differ from text to text"):
        distill(ZICLClassifier(index, 3, lm, method="no-demos").fit(), SENTENCES)


def test_bad_settings_and_texts_are_errors(teacher):
    with pytest.raises(ConfigError, match="expected at least 5"):
        distill(teacher, SENTENCES, sample=4)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        distill(teacher, SENTENCES, held_out=1)
    with pytest.raises(NotFittedError):
        distill(clone(teacher), SENTENCES)
    with pytest.raises(TextError, match="2 different texts"):
        distill(teacher, ["One.", "Two.", "One. "])
    with pytest.raises(TextError, match="a list was expected"):
        distill(teacher, "One text.")


@given(st.integers(5, 300), st.floats(0.01, 0.9), st.integers(0, 5))
def test_every_row_is_trained_on_or_held_out(count, share, seed):
    kept, held = split_rows(count, share, seed)
    assert sorted([*kept, *held]) == list(range(count))
    assert len(kept) >= 2
    assert len(held) >= 1
