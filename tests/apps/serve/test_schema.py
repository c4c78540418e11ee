import pytest
from pydantic import ValidationError

from zicl.apps.serve.schema import ClassifyRequest, LabelSpec, RetrieveRequest, SynonymsRequest


def test_one_text_or_many():
    assert ClassifyRequest(text="a").text == "a"
    assert ClassifyRequest(texts=["a", "b"]).texts == ["a", "b"]
    for wrong in ({}, {"text": "a", "texts": ["b"]}, {"texts": []}, {"texts": "a"}, {"text": 1}):
        with pytest.raises(ValidationError):
            ClassifyRequest(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": "5"}, {"k": -1}, {"k": True}, {"k": 2.5}, {"seed": -1}, {"seed": 2**60}, {"explain": 1},
        {"inference": "x"},
        {"labels": ["one"]}, {"labels": ["a", ""]}, {"labels": ["a", 2]}, {"labels": "a,b"}, {"unknown": 1},
        {"labels": ["a", {"name": "b", "colour": "red"}]}, {"labels": ["a", {"words": "b"}]},
        {"labels": ["a", {"name": "b", "synonyms": ["c"] * 21}]}, {"template": ["one line"]}, {"template": []},
        {"template": ["a", "b", "c"]}, {"template": "x" * 201}, {"method": "x" * 201},
    ],
)  # fmt: skip
def test_what_is_refused(wrong):
    with pytest.raises(ValidationError):
        ClassifyRequest(text="a", **wrong)


def test_labels_are_names_or_more():
    asked = SynonymsRequest(labels=["a", {"name": "b", "synonyms": ["c"]}])
    assert asked.labels == ["a", LabelSpec(name="b", synonyms=["c"])]
    with pytest.raises(ValidationError):
        RetrieveRequest(text="a", k=0)
