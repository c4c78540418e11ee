"""Errors of the library as documents: which part of a request they are about, so that a client can go on without it."""

import json

import pytest

from zicl.apps.serve.problems import refusal
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
