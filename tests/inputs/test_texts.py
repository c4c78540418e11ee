"""Texts and pairs are checked, with errors that name the row."""

import pytest

from zicl.exceptions import TextError
from zicl.inputs.pair import Pair
from zicl.inputs.texts import check_texts

PAIRS = [("The soup was cold.", "Nobody ate it."), ("She sang.", "The room was silent.")]


def test_tuples_are_pairs():
    assert check_texts(PAIRS) == [Pair(*pair) for pair in PAIRS]
    assert check_texts(check_texts(PAIRS)) == check_texts(PAIRS)
    with pytest.raises(TextError, match="row 0 holds 3 texts"):
        check_texts([("a", "b", "c")])
    with pytest.raises(TextError, match="second text, is empty"):
        check_texts([("a", " ")])
