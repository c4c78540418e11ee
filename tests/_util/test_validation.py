"""Wrong settings in words: a key that there is not, and a value that is none of those expected."""

import pytest
from pydantic import ValidationError

from zicl._util.validation import config_error
from zicl.config import Scoring


def said(**given):
    with pytest.raises(ValidationError) as error:
        Scoring.model_validate(given)
    return config_error(error.value, Scoring)


def test_a_value_is_compared_with_those_expected():
    found = said(inference="chanel")
    assert "did you mean 'channel'?" in found.message
    # The keys were right.
    assert not found.hint
    assert "did you mean" not in said(inference="xyz").message


def test_a_key_is_compared_with_those_there_are():
    found = said(inferense="channel")
    assert "did you mean 'inference'?" in found.message
    assert found.hint.startswith("its keys are: inference, ")
