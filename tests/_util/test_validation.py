"""Wrong settings in words: unknown keys, wrong values, values that may have several types."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zicl._util.validation import config_error, field_errors
from zicl.config import PromptSettings, Retrieval, Scoring


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    size: int = Field(1, ge=1)


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    items: list[str | Inner] = []
    named: dict[str, Inner] = {}
    values: dict[str, list[int]] | list[int] = []


def errors(model, given):
    with pytest.raises(ValidationError) as error:
        model.model_validate(given)
    return error.value


def error_of(model, **given):
    return config_error(errors(model, given), model)


def test_a_value_is_compared_with_the_expected_ones():
    error = error_of(Scoring, inference="chanel")
    assert "did you mean 'channel'?" in error.message
    # The keys were right.
    assert not error.hint
    assert "did you mean" not in error_of(Scoring, inference="xyz").message


def test_a_key_is_compared_with_the_known_ones():
    error = error_of(Scoring, inferense="channel")
    assert "did you mean 'inference'?" in error.message
    assert error.hint.startswith("its keys are: inference, ")


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (Scoring, {"batch_size": 0}, "batch_size: it is too small, expected at least 1 (given: 0)"),
        (Retrieval, {"exclude_self": "perhaps"}, "exclude_self: it is not true or false (given: 'perhaps')"),
        (Retrieval, {"k": 1.5}, "k: it is not a whole number (given: 1.5)"),
        (Retrieval, {"pool": "some"}, "pool: it is not a whole number or a number (given: 'some')"),
        (PromptSettings, {"template": 5}, "template: it is not a string or a list (given: 5)"),
        (Inner, {}, "name: it is missing"),
    ],
)
def test_the_message_says_what_was_expected_and_what_was_given(model, given, message):
    assert error_of(model, **given).message == message


@pytest.mark.parametrize(
    ("given", "path", "problem"),
    [
        ({"items": ["a", 5]}, "items.1", "it is not a string or an object with keys"),
        ({"items": [{"name": "a", "size": 0}]}, "items.0.size", "it is too small"),
        ({"items": [{"name": "a", "sise": 1}]}, "items.0.sise", "there is no such key; did you mean 'size'?"),
        ({"named": {"first": {"name": 1}}}, "named.first.name", "it is not a string"),
        ({"values": {"first": ["x"]}}, "values.first.0", "it is not a whole number"),
        ({"int": 1}, "int", "there is no such key"),
    ],
)
def test_the_place_holds_keys_and_indexes_only(given, path, problem):
    (error,) = field_errors(errors(Outer, given).errors(), Outer)
    assert (error.path, error.problem) == (path, problem)


def test_values_of_options_are_named_by_these():
    error = config_error(errors(Scoring, {"dtype": "x"}), Scoring, "file.toml: ", {"dtype": "--dtype"})
    assert error.message.startswith("--dtype: it is not 'float32'")
    assert error.hint is None
