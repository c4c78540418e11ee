"""Errors of the library and of a request's values as problem documents."""

import json

import pytest
from pydantic import ValidationError

from zicl.apps.serve.problems import invalid_request, refusal
from zicl.apps.serve.schema import ClassifyRequest, RetrieveRequest, SynonymsRequest
from zicl.exceptions import LabelError, PromptError, RetrievalError, TextError, TokenizationError


@pytest.mark.parametrize(
    ("error", "about", "index"),
    [
        (TextError("row 0 is empty"), "texts.3", 3),
        (TokenizationError("the tokenizer does not give this text back"), "texts.3", 3),
        (RetrievalError("too few sentences"), "k", 3),
        (LabelError("one label"), "labels", None),
        (PromptError("no room"), None, None),
    ],
)
def test_an_error_is_about_one_text_or_about_all(error, about, index):
    found = json.loads(refusal(error).at(3).line)
    assert (found["status"], found.get("field"), found.get("index")) == (422, about, index)


def problem(body, model=ClassifyRequest):
    with pytest.raises(ValidationError) as raised:
        model.model_validate(body)
    # As the framework has it: everything stands in the body.
    errors = [{**error, "loc": ("body", *error["loc"])} for error in raised.value.errors()]
    return invalid_request(errors, model).problem


KEYS = "only the keys labels, template, method, inference, k, seed, text, texts, fit, top, explain, stream"


@pytest.mark.parametrize(
    ("change", "detail", "expected"),
    [
        ({"txts": ["x"]}, "txts: there is no such key; did you mean 'texts'?", KEYS),
        ({"colour": 1}, "colour: there is no such key", KEYS),
        ({"labels": ["a"]}, "labels: too few were given", "at least 2"),
        ({"labels": []}, "labels: too few were given", "at least 2"),
        ({"labels": "a,b"}, "labels: it is not a list", "a list"),
        ({"labels": ["a", ""]}, "labels.1: it is too short", "1 or more characters"),
        (
            {"labels": ["a", 5]},
            "labels.1: it is not a string or an object with keys",
            "a string or an object with keys",
        ),
        ({"labels": ["a", {"name": "b", "description": 5}]}, "labels.1.description: it is not a string", "a string"),
        ({"labels": ["a", {"name": 5}]}, "labels.1.name: it is not a string", "a string"),
        (
            {"labels": ["a", {"name": "b", "word": "c"}]},
            "labels.1.word: there is no such key; did you mean 'words'?",
            "only the keys name, words, synonyms, description",
        ),
        ({"template": 5}, "template: it is not a string or a list", "a string or a list"),
        ({"template": ["{input}"]}, "template: too few were given", "at least 2"),
        ({"template": ["{input}", 5]}, "template.1: it is not a string", "a string"),
        ({"template": ["a", "b", "c"]}, "template: too many were given", "at most 2"),
        ({"k": "5"}, "k: it is not a whole number", "a whole number"),
        ({"k": -1}, "k: it is too small", "at least 0"),
        ({"seed": 2**60}, "seed: it is too large", f"at most {2**53 - 1}"),
        ({"explain": 1}, "explain: it is not true or false", "true or false"),
        ({"inference": "x"}, "inference: it is not 'channel', 'direct' or 'both'", "'channel', 'direct' or 'both'"),
        ({"fit": "x"}, "fit: it has another form", "a string of the form ^[0-9a-f]{32}$"),
        ({"method": "x" * 201}, "method: it is too long", "at most 200 characters"),
    ],
)
def test_each_kind(change, detail, expected):
    found = problem({"text": "a", **change})
    assert (found.detail, found.expected) == (detail, expected)
    assert found.field == detail.partition(":")[0]
    assert found.hint


def test_several_are_told_together_and_a_long_key_is_shortened():
    found = problem({"text": "a", "k": "5", "x" * 1000: 1})
    assert found.detail.startswith("k: it is not a whole number; xxx")
    assert len(found.detail) < 150
    many = problem({"text": "a", **{f"key{number}": 1 for number in range(9)}})
    assert many.detail.endswith("; and 4 more")


@pytest.mark.parametrize(
    ("body", "detail"), [([], "a list"), ("x", "a string"), (5, "a number"), (float("nan"), "a number"), (None, "null")]
)
def test_a_body_that_is_no_object(body, detail):
    found = problem(body)
    assert found.detail == f"the body is {detail}, and no JSON object"
    assert '{"text": "…"}' in found.expected
    assert "labels" in problem(body, SynonymsRequest).expected


def test_what_has_to_be_there():
    assert problem({}, RetrieveRequest).detail == "text: it is missing"
    empty = invalid_request([{"type": "missing", "loc": ("body",), "input": None, "msg": ""}], ClassifyRequest).problem
    assert empty.detail == "the body is empty, and no JSON object"
    both, neither = problem({"text": "a", "texts": ["b"]}), problem({})
    assert (both.detail, neither.detail) == ("text and texts were both given", "neither text nor texts was given")
    assert both.expected == neither.expected == 'either "text", a string, or "texts", a list of strings'
