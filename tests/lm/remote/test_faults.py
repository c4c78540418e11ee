"""A server that fails for a while, or for good: each fault ends in the right retry or the right error."""

import pytest

from tests.lm.remote import server as fake
from tests.lm.remote.conftest import scores
from zicl.exceptions import ServerError


@pytest.mark.parametrize(
    "faults",
    [
        [fake.refuse(500)],
        [fake.refuse(502), fake.refuse(503), fake.refuse(504)],
        [fake.cut, fake.cut],
        [fake.garbage],
        [fake.not_zipped],
    ],
    ids=["500", "three", "cut", "not JSON", "not what the header says"],
)
def test_a_passing_fault_is_waited_out(faults, running, opened, slept, right):
    server = running(fake.VLLM)
    remote = opened(server, requests=1)
    server.faults += faults
    assert scores(remote) == right
    assert len(slept) == len(faults)
    assert slept == sorted(slept)


def test_the_server_says_how_long_to_wait(running, opened, slept, right):
    server = running(fake.VLLM)
    remote = opened(server, requests=1)
    server.faults.append(fake.refuse(429, Retry_After="17"))
    assert scores(remote) == right
    assert len(slept) == 1
    assert 17 < slept[0] < 18


def test_a_wait_beyond_all_patience_is_an_error(running, opened, slept):
    server = running(fake.VLLM)
    remote = opened(server)
    server.faults.append(fake.refuse(429, Retry_After="86400"))
    with pytest.raises(ServerError, match="a pause of 86400 seconds"):
        scores(remote)
    assert not slept


def test_a_hang_ends_at_the_time_limit(running, opened, slept, right):
    server = running(fake.VLLM)
    remote = opened(server, timeout=0.4, requests=1)
    server.faults.append(fake.hang(0.8))
    assert scores(remote) == right
    assert len(slept) == 1


def test_a_server_that_only_drips_ends_at_the_time_limit(running, opened, slept):
    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(10):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            fake.time.sleep(0.1)
        handler.close_connection = True
        return True

    server = running(fake.VLLM)
    remote = opened(server, timeout=0.3, requests=1, attempts=1)
    server.faults.append(drip)
    with pytest.raises(ServerError, match=r"no answer within 0\.3 seconds"):
        scores(remote)


def test_faults_that_do_not_pass_end_after_all_attempts(running, opened, slept):
    server = running(fake.VLLM)
    remote = opened(server, requests=1, attempts=4)
    server.faults += [fake.refuse(500)] * 4
    with pytest.raises(ServerError, match=r"4 attempts; the last error: 500: not now") as failed:
        scores(remote)
    assert failed.value.status == 500
    assert len(slept) == 3


def test_a_server_that_is_not_there(running, opened, slept):
    server = running(fake.VLLM)
    server.close()
    with pytest.raises(ServerError, match="no connection") as failed:
        opened(server)
    assert not failed.value.reached
    assert len(slept) == 2
