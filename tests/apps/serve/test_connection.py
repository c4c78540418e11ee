"""Connections that bring no request are closed; slow work is not."""

import http.client
import json
import socket
from types import SimpleNamespace

import pytest

from tests.apps.serve.conftest import listening
from tests.waiting import WAIT_SECONDS, wait_until
from zicl.apps.serve.server import Connection

BEGINNINGS = [b"", b"GET", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "]
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"


@pytest.fixture
def connections(monkeypatch):
    """The connections that the server has accepted; their time is not limited until a test does so."""
    accept, accepted = Connection.connection_made, []

    def connection_made(self, transport):
        accept(self, transport)
        accepted.append(self)

    monkeypatch.setattr(Connection, "connection_made", connection_made)
    monkeypatch.setattr(Connection, "seconds", 10 * WAIT_SECONDS)
    return accepted


@pytest.fixture
def port(connections, classifier):
    with listening(classifier) as (address, _):
        yield int(address.rpartition(":")[2])


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)


def is_closed(client, sent=b""):
    """Whether the server has closed the connection; ``sent`` is sent first."""
    try:
        client.sendall(sent)
        return client.recv(1000) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def drip(client):
    """Send letters one by one until the server closes the connection."""
    client.settimeout(0.05)
    wait_until(lambda: is_closed(client, b"x"))


def test_a_request_for_another_protocol_is_answered_and_no_package_is_recommended(port, caplog):
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    with caplog.at_level("WARNING"), connect(port) as client:
        client.sendall((REQUEST % port)[:-2] + upgrade)
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
    assert not caplog.records


def test_an_answer_does_not_wait_for_the_clients_acknowledgement(port, connections):
    with connect(port):
        wait_until(lambda: connections)
        accepted = connections[0].transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_head_that_does_not_come_is_given_up(port, monkeypatch, beginning):
    monkeypatch.setattr(Connection, "seconds", 0.3)
    with connect(port) as client:
        assert is_closed(client, beginning)


@pytest.mark.parametrize(
    ("sent", "status", "kind"),
    [
        (b"hello\r\n\r\n", 400, "not-http"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "not-http"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, "not-http"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000, 431, "large-head"),
        (b"FETCH / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 405, "method-not-allowed"),
    ],
)
def test_what_is_no_http_gets_a_problem_document(port, sent, status, kind):
    with connect(port) as client:
        client.sendall(sent)
        answer = http.client.HTTPResponse(client)
        answer.begin()
        problem = json.loads(answer.read())
    assert answer.status == problem["status"] == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem["type"] == f"urn:zicl:problem:{kind}"
    assert problem["hint"]


def test_a_head_request_with_a_broken_body_is_answered_without_one(port, caplog):
    with connect(port) as client:
        client.sendall(b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")
        answer = b"".join(iter(lambda: client.recv(4000), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in head.splitlines()[0]
    assert body == b""
    assert not [record for record in caplog.records if record.exc_info]


def test_letters_one_by_one_do_not_prolong_the_time(port, monkeypatch):
    monkeypatch.setattr(Connection, "seconds", 0.3)
    with connect(port) as client:
        drip(client)


def test_the_next_request_of_a_connection_has_as_long(port, connections, monkeypatch):
    with connect(port) as client:
        for _ in range(2):
            client.sendall(REQUEST % port)
            answer = b""
            # Head and body may come one after the other.
            while not answer.endswith(b"}"):
                answer += client.recv(4000)
            assert b" 200 " in answer
            # Between two requests only uvicorn's limit counts.
            assert connections[0]._head_timer is None
        monkeypatch.setattr(Connection, "seconds", 0.3)
        client.sendall(REQUEST[:20])
        drip(client)


def test_a_request_that_is_computed_has_the_time_it_needs(connections, gated):
    body = b'{"text": "Slowly."}'
    with listening(gated) as (address, _):
        port = int(address.rpartition(":")[2])
        head = b"POST /v1/classify HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % port
        with connect(port) as client:
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert gated.lm.begun.wait(WAIT_SECONDS)
            assert connections[0]._head_timer is connections[0]._read_timer is None
            gated.lm.gate.set()
            assert b" 200 " in client.recv(4000)


class Stalled:
    """A transport whose client reads part of an answer between two looks at what is left."""

    def __init__(self, left):
        self.left, self.aborted = left, False

    def get_write_buffer_size(self):
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def abort(self):
        self.aborted = True


class Clock:
    """A loop whose timer fires when a test says so."""

    def __init__(self):
        self.due = None

    def call_later(self, seconds, callback, *given):
        self.due = lambda: callback(*given)
        return SimpleNamespace(cancel=lambda: setattr(self, "due", None))


@pytest.mark.parametrize(
    ("left", "aborted"), [([900], True), ([900, 600, 300, 300], True), (list(range(900, 0, -1)), False)]
)
def test_an_answer_that_is_not_read_is_given_up(left, aborted):
    connection, clock = Connection.__new__(Connection), Clock()
    connection.loop, connection.transport, connection._read_timer = clock, Stalled(left), None
    connection.flow = SimpleNamespace(pause_writing=lambda: None, resume_writing=lambda: None)
    connection.pause_writing()
    for _ in range(100):
        if not connection.transport.aborted:
            clock.due()
    connection.resume_writing()
    assert connection._read_timer is clock.due is None
    assert connection.transport.aborted == aborted
