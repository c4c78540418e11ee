"""The API where texts may fit no label, or several, and where only the likeliest labels are asked for."""

import pytest

from tests.apps.serve.conftest import asked, same
from tests.score.test_decision import BOTH, FILM, LABELS, ODD, SOUP, TRAIN, WideEncoder
from zicl import ZICLClassifier


@pytest.fixture(scope="module", params=["none", "multi"])
def served(request):
    settings = {"none": "other"} if request.param == "none" else {"multi": True}
    pile = SOUP + TRAIN + FILM + (ODD if request.param == "none" else BOTH)
    classifier = ZICLClassifier(labels=LABELS, encoder=WideEncoder(), **settings).fit(pile)
    with asked(classifier) as client:
        yield client, classifier, pile


def test_answers_are_the_librarys(served):
    client, classifier, pile = served
    response = client.post("/v1/classify", json={"texts": pile[-3:], "explain": True}).json()
    for answer, result in zip(response["results"], classifier.classify(pile[-3:]), strict=True):
        same(answer, result)
        assert answer["labels"] == list(result.labels)
    settings = response["settings"]
    assert (settings["none"], settings["multi"]) == (classifier.none, classifier.multi)


def test_the_likeliest_labels(served):
    client, classifier, pile = served
    [answer] = client.post("/v1/classify", json={"text": pile[0], "top": 2}).json()["results"]
    expected = dict(classifier.classify(pile[:1])[0].top(2))
    assert answer["probabilities"] == pytest.approx(expected)
    assert list(answer["probabilities"]) == list(expected)
    assert client.post("/v1/classify", json={"text": pile[0], "top": 0}).status_code == 422


def test_other_labels_are_answered_one_per_text(served):
    client, _, pile = served
    answer = client.post("/v1/classify", json={"text": pile[0], "labels": ["hot", "cold"]}).json()
    assert len(answer["results"][0]["labels"]) == 1
    assert answer["settings"]["none"] is None
    assert not answer["settings"]["multi"]
