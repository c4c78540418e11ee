import pytest

from tests.apps.serve.conftest import asked
from zicl.apps.serve.limits import RequestLimits
from zicl.exceptions import UsageError

SMALL = RequestLimits(body=2000, texts=3, characters=50, labels=4, k=5, queue=8)
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def small(classifier):
    with asked(classifier, SMALL) as client:
        yield client


@pytest.mark.parametrize(
    ("body", "field", "expected"),
    [
        ({"texts": ["a", "b", "c", "d"]}, "texts", "at most 3 texts"),
        ({"text": "x" * 51}, "text", "at most 50 characters"),
        ({"texts": ["fine", "x" * 51]}, "texts.1", "at most 50 characters"),
        ({"text": "x", "labels": list("abcde")}, "labels", "at most 4 labels"),
        ({"text": "x", "k": 6}, "k", "at most 5 demonstrations"),
    ],
)
def test_too_much_is_refused_with_the_limit(small, body, field, expected):
    answer = small.post("/v1/classify", json=body)
    assert answer.status_code == 422
    problem = answer.json()
    assert (problem["type"], problem["field"], problem["expected"]) == ("urn:zicl:problem:over-limit", field, expected)


def test_a_body_that_says_it_is_too_large_is_not_read(small):
    answer = small.post("/v1/classify", content=b"x" * 2001, headers=JSON)
    assert answer.status_code == 413
    assert "2,000 bytes" in answer.json()["expected"]


def test_a_body_that_says_nothing_of_its_size_is_counted(small):
    def pieces():
        for _ in range(100):
            yield b" " * 100

    answer = small.post("/v1/classify", content=pieces(), headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_form_of_another_site_could_send_is_refused(small, kind):
    answer = small.post("/v1/classify", content=b'{"text": "x"}', headers={"Content-Type": kind} if kind else {})
    assert answer.status_code == 415


def test_ten_thousand_labels_and_a_megabyte_of_text(client):
    many = client.post("/v1/classify", json={"text": "x", "labels": [f"label {n}" for n in range(10_000)]})
    assert many.status_code == 422
    assert many.json()["expected"] == "at most 100 labels"
    long = client.post("/v1/classify", json={"text": "word " * 200_000})
    assert long.status_code == 422
    assert long.json()["expected"] == "at most 10,000 characters"
    longer = client.post("/v1/classify", json={"text": "word " * 300_000})
    assert longer.status_code == 413
    assert client.post("/v1/synonyms", json={"labels": [f"label {n}" for n in range(10_000)]}).status_code == 422
    assert client.post("/v1/retrieve", json={"text": "word " * 200_000}).status_code == 422


def test_limits_that_cannot_be():
    with pytest.raises(UsageError, match="above 0"):
        RequestLimits(texts=0)
    with pytest.raises(UsageError, match="only 10 may wait"):
        RequestLimits(texts=20, queue=10)
