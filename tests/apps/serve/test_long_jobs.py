"""What is learned from the texts of a request, and their map."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.apps.serve.conftest import asked, listening, same
from tests.apps.serve.test_clients import raw_request
from tests.conftest import DOCUMENTS, BagEncoder
from tests.waiting import WAIT_SECONDS, wait_until
from zicl import ZICLClassifier
from zicl.apps.serve.configurations import NO_LABELS
from zicl.apps.serve.limits import RequestLimits

SENTENCES = [sentence.strip(".") for text in DOCUMENTS for sentence in text.split(". ")]
PILE = [f"{sentence} on {day}." for sentence in SENTENCES for day in ("Monday", "Sunday")]
LABELS = [{"name": "food", "synonyms": ["bread", "soup"]}, {"name": "film", "description": "the film and the actors"}]


class GatedEncoder(BagEncoder):
    """An encoder that counts what it encodes, and stops before each group once it is held."""

    def __init__(self):
        self.encoded, self.begun, self.gate = [], threading.Event(), threading.Event()
        self.gate.set()

    def encode(self, texts):
        self.begun.set()
        assert self.gate.wait(WAIT_SECONDS)
        self.encoded += texts
        return super().encode(texts)

    def hold(self):
        self.begun.clear()
        self.gate.clear()


def labels_of(specs):
    from zicl.apps.serve.configurations import labels_of
    from zicl.apps.serve.schema import LabelSpec

    return labels_of([LabelSpec(**each) for each in specs])


@pytest.fixture
def encoder():
    found = GatedEncoder()
    yield found
    found.gate.set()


@pytest.fixture
def plain(encoder):
    """A server's classifier without labels and without a corpus."""
    return ZICLClassifier(None, NO_LABELS, encoder=encoder).fit()


def lines(answer):
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_fit_has_the_librarys_numbers_for_its_texts_and_for_others(plain):
    own = ZICLClassifier(None, labels_of(LABELS), encoder=BagEncoder()).fit(PILE)
    others = ["The waiter sang.", "Nobody saw the film."]
    with asked(plain) as client:
        fitted = client.post("/v1/fit", json={"texts": PILE[::-1], "labels": LABELS}).json()
        assert fitted["settings"]["pile"] == len(set(PILE)) == own.fitted_.pile.texts
        assert fitted["weight"] == pytest.approx(own.fitted_.pile.weight, abs=1e-4)
        assert fitted["settings"]["method"] == "z-icl+"
        answer = client.post("/v1/classify", json={"texts": [*PILE, *others], "fit": fitted["fit"]}).json()
        for told, prediction in zip(answer["results"], own.classify([*PILE, *others]), strict=True):
            same(told, prediction)
        # A classifier that learned from them is not the one that did not: the comparison above says something.
        alone = client.post("/v1/classify", json={"texts": others, "labels": LABELS}).json()["results"]
        shares = [each["probabilities"]["food"] for each in (*answer["results"][-2:], *alone)]
        assert max(abs(a - b) for a, b in zip(shares[:2], shares[2:], strict=True)) > 0.01


def test_the_numbers_of_others_do_not_change(plain):
    ask = {"text": PILE[0], "labels": LABELS}
    with asked(plain) as client:
        before = client.post("/v1/classify", json=ask).json()
        for texts in (PILE, PILE[:30]):
            client.post("/v1/fit", json={"texts": texts, "labels": LABELS})
        assert client.post("/v1/classify", json={**ask, "explain": True}).json()["settings"] == before["settings"]
        assert client.post("/v1/classify", json=ask).json() == before


def test_an_explanation_says_what_each_expert_said_and_which_words_were_near(plain):
    with asked(plain) as client:
        fit = client.post("/v1/fit", json={"texts": PILE, "labels": LABELS}).json()["fit"]
        ask = {"text": "The soup was cold.", "fit": fit, "explain": True}
        told = client.post("/v1/classify", json=ask).json()["results"][0]["explanation"]
    assert set(told["experts"]) == {"encoder", "pile"}
    assert {each["words"] for each in told["nearest"]["food"]} == {"food", "bread", "soup"}
    assert {each["words"] for each in told["nearest"]["film"]} == {"film", "the film and the actors"}
    near = [each["similarity"] for each in told["nearest"]["food"]]
    assert near == sorted(near, reverse=True)
    described = next(each for each in told["nearest"]["film"] if " " in each["words"])
    vectors = BagEncoder().encode(["The soup was cold.", "the film and the actors"])
    assert described["similarity"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-4)


def test_a_stream_says_how_far_it_is(plain):
    with asked(plain) as client:
        told = lines(client.post("/v1/fit", json={"texts": PILE, "labels": LABELS, "stream": True}))
        assert [each["done"] for each in told[:-1]] == [0, 16, 32, 48, len(set(PILE))]
        assert [each["stage"] for each in told[:-1]] == ["encoding"] * 4 + ["learning"]
        assert told[-1]["settings"]["pile"] == len(set(PILE))
        again = lines(client.post("/v1/fit", json={"texts": PILE, "labels": LABELS, "stream": True}))
        # Known already: nothing is learned twice.
        assert again == told[-1:]


def test_a_few_texts_teach_nothing_and_it_is_said(plain):
    with asked(plain) as client:
        told = client.post("/v1/fit", json={"texts": PILE[:5], "labels": LABELS}).json()
        assert told["settings"]["pile"] == 0
        assert "too few" in told["warnings"][0]
        assert client.post("/v1/classify", json={"text": PILE[0], "fit": told["fit"]}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "field", "says"),
    [
        ("classify", {"text": "x"}, 422, "labels", "no labels were given"),
        ("fit", {"texts": PILE}, 422, "labels", "no labels were given"),
        ("fit", {"texts": PILE, "labels": LABELS, "method": "naive"}, 422, "method", "learns nothing from texts"),
        ("fit", {"texts": PILE, "labels": LABELS, "method": "naiv"}, 422, "method", "unknown method"),
        ("fit", {"texts": [*PILE, " "], "labels": LABELS}, 422, f"texts.{len(PILE)}", "is empty"),
        ("fit", {"texts": [f"{n}" for n in range(101)], "labels": LABELS}, 422, "texts", "101 texts were given"),
        ("fit", {"texts": PILE, "labels": ["a", "A"]}, 422, "labels", "the same words"),
        ("fit", {}, 422, "texts", "texts"),
        ("map", {"texts": ["a", "b"]}, 422, "texts", "texts"),
        ("map", {"texts": [f"{n}" for n in range(101)]}, 422, "texts", "101 texts were given"),
        ("classify", {"text": "x", "fit": "0" * 32}, 404, "fit", "not kept any more"),
        ("classify", {"text": "x", "fit": "../../etc"}, 422, "fit", "fit"),
        ("classify", {"text": "x", "fit": "0" * 32, "method": "naive"}, 422, "method", "has its own settings"),
    ],
)
def test_what_cannot_be_is_a_problem_document(plain, path, body, status, field, says):
    with asked(plain, RequestLimits(pile=100)) as client:
        answer = client.post(f"/v1/{path}", json=body)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert says in answer.json()["detail"]


def test_what_was_learned_is_kept_within_bounds(plain, monkeypatch):
    monkeypatch.setattr("zicl.apps.serve.configurations._FITS", 2)
    with asked(plain) as client:
        fits = [
            client.post("/v1/fit", json={"texts": PILE[start : start + 25], "labels": LABELS}).json()["fit"]
            for start in range(3)
        ]
        codes = [client.post("/v1/classify", json={"text": "x", "fit": fit}).status_code for fit in fits]
        assert codes == [404, 200, 200]
        # Sent again, it is learned again.
        again = client.post("/v1/fit", json={"texts": PILE[:25], "labels": LABELS}).json()["fit"]
        assert again == fits[0]
        assert client.post("/v1/classify", json={"text": "x", "fit": again}).status_code == 200


def test_a_fit_that_would_not_be_kept_is_refused_when_its_first_texts_are_encoded(plain, encoder, monkeypatch):
    texts = sorted(set(PILE))
    size = sum(vector.nbytes for vector in BagEncoder().encode(texts)) + sum(map(len, texts))
    with asked(plain) as client:
        monkeypatch.setattr(client.service.engine.configurations._fits, "_max_weight", size)
        monkeypatch.setattr("zicl.apps.serve.configurations._FIT_BYTES", size)
        fit = client.post("/v1/fit", json={"texts": texts, "labels": LABELS}).json()["fit"]
        assert client.post("/v1/classify", json={"text": "x", "fit": fit}).status_code == 200
        encoder.encoded.clear()
        refused = client.post("/v1/fit", json={"texts": [*texts, "One more text."], "labels": LABELS})
    assert (refused.status_code, refused.json()["field"]) == (422, "texts")
    assert refused.json()["type"] == "urn:zicl:problem:over-limit"
    assert f"about {len(texts)} texts" in refused.json()["expected"]
    assert len(encoder.encoded) <= 16


@pytest.mark.parametrize("path", ["fit", "map"])
def test_a_client_that_leaves_ends_the_work(plain, encoder, path):
    body = {"texts": PILE, "stream": True, **({"labels": LABELS} if path == "fit" else {})}
    with listening(plain) as (address, service):
        encoder.encoded.clear()
        encoder.hold()
        leaving = raw_request(address, body, path)
        assert encoder.begun.wait(WAIT_SECONDS)
        # The job that runs has no place any more, and waits for nobody once its client is gone.
        [entry] = service.queue._entries.values()
        leaving.close()
        wait_until(lambda: not entry.waiters)
        encoder.gate.set()
        wait_until(lambda: not service.queue._entries)
        assert service.queue.waiting == 0
        # One group, of sixty texts.
        assert len([text for text in encoder.encoded if text in PILE]) == 16


def test_a_short_request_goes_between_the_groups_of_a_fit(plain, encoder):
    with listening(plain) as (address, service):
        encoder.encoded.clear()
        encoder.hold()
        fit = raw_request(address, {"texts": PILE, "labels": LABELS}, "fit")
        assert encoder.begun.wait(WAIT_SECONDS)
        short = raw_request(address, {"text": "A short question.", "labels": LABELS})
        with fit, short:
            wait_until(lambda: service.queue.waiting == 1)
            encoder.gate.set()
            assert b'"label"' in received(short)
            assert b'"fit"' in received(fit)
    place = encoder.encoded.index("A short question.")
    assert len([text for text in encoder.encoded[:place] if text in PILE]) == 16


def test_one_fit_or_map_too_many_is_refused_and_others_are_answered(plain, encoder, monkeypatch):
    monkeypatch.setattr("zicl.apps.serve.queue.MOST_LONG_JOBS", 1)
    with asked(plain) as client, ThreadPoolExecutor(2) as others:
        encoder.hold()
        fit = others.submit(client.post, "/v1/fit", json={"texts": PILE, "labels": LABELS})
        assert encoder.begun.wait(WAIT_SECONDS)
        refused = client.post("/v1/map", json={"texts": PILE})
        short = others.submit(client.post, "/v1/classify", json={"text": "A short question.", "labels": LABELS})
        encoder.gate.set()
        assert (fit.result().status_code, short.result().status_code) == (200, 200)
        assert client.post("/v1/map", json={"texts": PILE}).status_code == 200
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
    assert refused.json()["type"] == "urn:zicl:problem:busy"
    assert "1 fits and maps" in refused.json()["detail"]


def received(connection):
    parts = b""
    while not parts.rstrip().endswith(b"}"):
        part = connection.recv(1 << 16)
        assert part, parts
        parts += part
    return parts


def test_equal_fits_are_learned_once(plain, encoder):
    with listening(plain) as (address, service):
        encoder.hold()
        first = raw_request(address, {"texts": PILE, "labels": LABELS}, "fit")
        assert encoder.begun.wait(WAIT_SECONDS)
        second = raw_request(address, {"texts": PILE[::-1], "labels": LABELS}, "fit")
        wait_until(lambda: "zicl_joined_total 1.0" in service.metrics.text().decode())
        # The first leaves: the second keeps what is done.
        first.close()
        [entry] = service.queue._entries.values()
        wait_until(lambda: len(entry.waiters) == 1)
        encoder.gate.set()
        with second:
            assert b'"fit"' in received(second)
    assert len([text for text in encoder.encoded if text in PILE]) == len(set(PILE))


def test_a_map_has_similar_texts_side_by_side(plain):
    twins = ["The soup was cold and thin.", "The soup was cold and thin."]
    with asked(plain) as client:
        found = client.post("/v1/map", json={"texts": [*PILE, *twins]}).json()
        points = np.array(found["points"])
        assert points.shape == (len(PILE) + 2, 2)
        assert np.abs(points).max() == pytest.approx(1, abs=1e-3)
        assert len(found["outlying"]) == len(points)
        spread = np.linalg.norm(points - points.mean(axis=0), axis=1).mean()
        assert np.linalg.norm(points[-1] - points[-2]) == 0 < spread
        same = client.post("/v1/map", json={"texts": ["The same soup."] * 30}).json()
        assert same["points"] == [[0, 0]] * 30
        few = client.post("/v1/map", json={"texts": PILE[:3]}).json()
        assert few["layout"] == "pca"
        told = lines(client.post("/v1/map", json={"texts": PILE[:40], "stream": True}))
        assert told[-1]["points"]
        assert {each["stage"] for each in told[:-1]} <= {"encoding", "drawing"}


def test_a_server_without_labels_says_so(plain):
    with asked(plain) as client:
        info = client.get("/v1/info").json()
        assert info["settings"]["labels"] == []
        assert info["corpus"] is None
        assert info["limits"]["pile"] == 2000
        answer = client.post("/v1/classify", json={"text": "The soup was cold.", "labels": LABELS})
        assert [label["name"] for label in answer.json()["settings"]["labels"]] == ["food", "film"]
