"""Sentence splitters and paragraphs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.corpus.splitter import LONGEST_PARAGRAPH, get_splitter, paragraphs
from zicl.exceptions import UnknownNameError


@given(st.lists(st.text(st.characters(categories=["L"]), min_size=1), max_size=70))
def test_paragraphs_keep_every_sentence_in_order(words):
    found = list(paragraphs(" ".join(words), str.split))
    assert [word for paragraph in found for word in paragraph] == " ".join(words).split()
    assert all(0 < len(paragraph) <= LONGEST_PARAGRAPH for paragraph in found)


def test_splitters():
    text = "Dr. Gray left early. the soup was cold! Was it?"
    assert get_splitter("sentencex")(text) == ["Dr. Gray left early.", "the soup was cold!", "Was it?"]
    with pytest.raises(UnknownNameError, match="did you mean 'sentencex'"):
        get_splitter("sentencx")
