"""Many clients on a real port: full queues, deadlines, clients that vanish, an end under load."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import pytest

from tests.apps.serve.conftest import TEXTS, listening
from tests.waiting import WAIT_SECONDS, wait_until
from zicl import ZICLClassifier
from zicl.apps.serve.body import RequestBody
from zicl.apps.serve.limits import RequestLimits


def post(address, body):
    return httpx.post(f"{address}/v1/classify", json=body, timeout=WAIT_SECONDS)


def raw_request(address, body, path="classify"):
    """A request on a socket of our own, which can be dropped at any time."""
    host, port = address.removeprefix("http://").split(":")
    content = json.dumps(body).encode()
    found = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)
    head = f"POST /v1/{path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    found.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return found


def test_a_full_queue_answers_at_once_and_a_vanished_client_frees_its_place(gated):
    model = gated.lm
    with listening(gated, RequestLimits(queue=2, texts=2)) as (address, service), ThreadPoolExecutor(4) as clients:
        first = clients.submit(post, address, {"text": TEXTS[0]})
        assert model.begun.wait(WAIT_SECONDS)
        leaving = raw_request(address, {"texts": TEXTS[1:3]})
        wait_until(lambda: service.queue.waiting == 2)
        # Answered while the model is held: a refusal waits for nothing.
        refused = post(address, {"text": TEXTS[3]})
        assert refused.status_code == 503
        assert refused.json()["type"] == "urn:zicl:problem:busy"
        assert int(refused.headers["Retry-After"]) >= 1
        leaving.close()
        wait_until(lambda: service.queue.waiting == 0)
        second = clients.submit(post, address, {"text": TEXTS[3]})
        wait_until(lambda: service.queue.waiting == 1)
        model.gate.set()
        assert first.result(WAIT_SECONDS).status_code == second.result(WAIT_SECONDS).status_code == 200
    assert model.calls == [1, 1]


def test_a_stream_whose_client_vanishes_frees_its_places(gated):
    with listening(gated) as (address, service):
        leaving = raw_request(address, {"texts": TEXTS, "stream": True})
        assert gated.lm.begun.wait(WAIT_SECONDS)
        more = raw_request(address, {"texts": [f"{text} Again." for text in TEXTS], "stream": True})
        # One is being computed.
        wait_until(lambda: service.queue.waiting == 2 * len(TEXTS) - 1)
        more.close()
        wait_until(lambda: service.queue.waiting == len(TEXTS) - 1)
        leaving.close()
        wait_until(lambda: service.queue.waiting == 0)
        gated.lm.gate.set()
        assert post(address, {"text": "Still there."}).status_code == 200


def test_clients_that_vanish_at_any_point_do_no_harm(classifier):
    with listening(classifier, RequestLimits(queue=32, texts=32)) as (address, service):
        host, port = address.removeprefix("http://").split(":")
        head = b"POST /v1/classify HTTP/1.1\r\nHost: " + f"{host}:{port}".encode()
        for part in (b"", b"POST", head, head + b"\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{"):
            for _ in range(5):
                with socket.create_connection((host, int(port))) as found:
                    found.sendall(part)
        for number in range(20):
            found = raw_request(address, {"texts": [f"{text} {number}" for text in TEXTS], "stream": number % 2 == 0})
            if number % 3 == 0:
                found.recv(10)
            found.close()
            wait_until(lambda: service.queue.waiting < 16)
        wait_until(lambda: service.queue.waiting == 0)
        assert post(address, {"texts": TEXTS}).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_has_a_deadline(gated, stream):
    with listening(gated, RequestLimits(deadline=0.3)) as (address, service):
        answer = post(address, {"texts": TEXTS[:2], "stream": stream})
        problem = json.loads(answer.text.splitlines()[-1])
        assert problem["type"] == "urn:zicl:problem:overdue"
        assert problem["status"] == 503
        assert answer.status_code == (200 if stream else 503)
        wait_until(lambda: service.queue.waiting == 0)
        gated.lm.gate.set()


def test_equal_requests_are_computed_once_and_answers_are_kept(gated):
    with listening(gated) as (address, service), ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(post, address, {"text": TEXTS[0]}) for _ in range(8)]
        wait_until(lambda: "zicl_joined_total 7.0" in service.metrics.text().decode())
        gated.lm.gate.set()
        answers = [each.result(WAIT_SECONDS).json() for each in asked]
        assert all(answer == answers[0] for answer in answers)
        assert post(address, {"text": TEXTS[0]}).json() == answers[0]
        assert sum(gated.lm.calls) == 1


def test_a_body_that_does_not_come_is_given_up(classifier, monkeypatch):
    monkeypatch.setitem(RequestBody.__init__.__kwdefaults__, "seconds", 0.2)
    with listening(classifier) as (address, _):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS) as found:
            head = f"POST /v1/classify HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            found.sendall(f"{head}Content-Length: 50\r\n\r\n{{".encode())
            assert b" 408 " in found.recv(1000)


def test_an_answer_is_the_same_whatever_else_is_computed(served_index, lm):
    def fresh():
        return ZICLClassifier(served_index, ["terrible", "great"], lm, method="no-demos", offline=True).fit()

    def ask(address, number):
        return post(address, {"text": TEXTS[number], "explain": True}).content

    with listening(fresh()) as (address, _):
        alone = [ask(address, number) for number in range(6)]
    with listening(fresh()) as (address, service), ThreadPoolExecutor(8) as clients:
        large = clients.submit(post, address, {"texts": [f"{text} {n}" for text in TEXTS for n in range(20)]})
        wait_until(lambda: service.queue.waiting or large.done())
        assert list(clients.map(lambda number: ask(address, number), range(6))) == alone
        assert large.result().status_code == 200
