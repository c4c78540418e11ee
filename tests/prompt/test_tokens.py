"""Segments decode to their text, cut or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import byte_tokenizer
from zicl.exceptions import TokenizationError
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.tokens import tokenize, truncate

TINY = PlainTokenizer(byte_tokenizer(), "tiny")
sentences = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(lambda t: t.strip())


@given(sentences, st.integers(1, 20))
def test_a_cut_decodes_to_itself_and_is_a_beginning(text, limit):
    found = truncate(TINY, text, limit)
    assert len(found) <= limit
    assert TINY.decode(found.tokens) == found.text
    assert text.startswith(found.text)


def test_special_tokens_written_in_a_text_stay_text():
    found = tokenize(TINY, "a <s> in the text </s>")
    assert TINY.bos not in found.tokens
    assert TINY.decode(found.tokens) == "a <s> in the text </s>"


def test_a_lossy_tokenizer_is_an_error_not_a_wrong_number():
    class Lossy(PlainTokenizer):
        def decode(self, tokens):
            return super().decode(tokens).lower()

    with pytest.raises(TokenizationError, match="does not give this text back"):
        tokenize(Lossy(byte_tokenizer(), "x"), "Upper")
