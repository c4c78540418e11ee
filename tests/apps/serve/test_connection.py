"""Connections that do not get round to a request are closed; slow work is not."""

import asyncio
import socket
import time
from types import SimpleNamespace

import pytest

from tests.apps.serve.conftest import listening
from zicl.apps.serve.body import Connection

BEGINNINGS = [b"", b"GET", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "]
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"


@pytest.fixture
def port(classifier, monkeypatch):
    monkeypatch.setattr(Connection, "seconds", 0.3)
    with listening(classifier) as (address, _):
        yield int(address.rpartition(":")[2])


def dripped(found, seconds=5):
    """What comes back while letters are sent one by one, until the other side hangs up."""
    end = time.monotonic() + seconds
    found.settimeout(0.05)
    while time.monotonic() < end:
        try:
            found.sendall(b"x")
            if not found.recv(1000):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_an_answer_does_not_wait_for_the_clients_acknowledgement(classifier, monkeypatch):
    made, found = Connection.connection_made, []

    def watched(self, transport):
        made(self, transport)
        found.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(Connection, "connection_made", watched)
    with listening(classifier):
        assert found
        assert all(found)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_head_that_does_not_come_is_given_up(port, beginning):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as found:
        found.sendall(beginning)
        assert found.recv(1000) == b""


def test_letters_one_by_one_do_not_prolong_the_time(port):
    with socket.create_connection(("127.0.0.1", port)) as found:
        found.sendall(BEGINNINGS[-1])
        assert dripped(found)


def test_the_next_request_of_a_connection_has_as_long(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as found:
        for _ in range(2):
            found.sendall(WHOLE % port)
            answer = b""
            # Head and body may come one after the other.
            while not answer.endswith(b"}"):
                answer += found.recv(4000)
            assert b" 200 " in answer
            time.sleep(0.4)
        found.sendall(WHOLE[:20])
        assert dripped(found)


def test_a_request_that_is_computed_has_the_time_it_needs(gated, monkeypatch):
    monkeypatch.setattr(Connection, "seconds", 0.1)
    body = b'{"text": "Slowly."}'
    with listening(gated) as (address, _):
        port = int(address.rpartition(":")[2])
        head = b"POST /v1/classify HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % port
        with socket.create_connection(("127.0.0.1", port), timeout=10) as found:
            found.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert gated.lm.begun.wait(10)
            time.sleep(0.3)
            gated.lm.gate.set()
            assert b" 200 " in found.recv(4000)


class Stalled:
    """A transport whose other side takes so much of an answer, look by look."""

    def __init__(self, left):
        self.left, self.aborted = left, False

    def get_write_buffer_size(self):
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def abort(self):
        self.aborted = True


@pytest.mark.parametrize(
    ("left", "aborted"), [([900], True), ([900, 600, 300, 300], True), (list(range(900, 0, -1)), False)]
)
def test_an_answer_that_nobody_reads_is_given_up(left, aborted):
    async def run():
        found = Connection.__new__(Connection)
        found.seconds, found.loop, found.transport, found._reading = (
            0.001,
            asyncio.get_running_loop(),
            Stalled(left),
            None,
        )
        found.flow = SimpleNamespace(pause_writing=lambda: None, resume_writing=lambda: None)
        found.pause_writing()
        await asyncio.sleep(0.1)
        found.resume_writing()
        assert found._reading is None
        return found.transport.aborted

    assert asyncio.run(run()) == aborted
