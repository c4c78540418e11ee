"""Planted paraphrases: near their text, never equal to it, beside a sentence of the corpus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS, make_index
from tests.retrieve.conftest import write
from zicl.retrieve.planted import paraphrase, plant
from zicl.retrieve.strategies.base import Query
from zicl.retrieve.strategies.nearest import Nearest
from zicl.retrieve.strategies.physical import Physical

TEXTS = ["A quiet film about a ferry and the man who steers it.", "The soup came late. It was cold as well."]
words = st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=1, max_size=30).map(" ".join)


@given(words, st.integers(0, 3))
def test_a_paraphrase_has_some_of_the_words_and_is_another_text(text, seed):
    found = paraphrase(text, seed)
    assert found
    assert found != text
    assert paraphrase(text, seed) == found
    if len(text.split()) > 1:
        assert len(found.split()) <= len(text.split())
        assert all(found.split().count(word) <= text.split().count(word) for word in found.split())


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    index = make_index(folder / "c.zicl", domains=write(folder, {"a": DOCUMENTS}))
    return plant(index, TEXTS)


@pytest.mark.parametrize("text", TEXTS)
def test_the_nearest_sentence_is_the_paraphrase_and_its_neighbour_is_of_the_corpus(planted, text):
    nearest = planted.sentence(Nearest().retrieve(planted, Query(text), 3)[0].row).text
    assert nearest == paraphrase(text)
    shown = Physical().retrieve(planted, Query(text), 3)[0]
    assert planted.sentence(shown.nearest).text == nearest
    corpus = {planted.base.sentence(int(row)).text for row in planted.base.indexed()}
    assert planted.sentence(shown.row).text in corpus
    assert nearest not in corpus
