"""Addresses: one clear form, no secrets in them, and what counts as this machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import ConfigError
from zicl.lm.remote.settings import ServerAddress, is_remote, parse_address


@pytest.mark.parametrize(
    ("spec", "base", "model", "root"),
    [
        ("http://127.0.0.1:8000/v1#tiny", "http://127.0.0.1:8000/v1", "tiny", "http://127.0.0.1:8000"),
        ("https://host.example/v1#org/model", "https://host.example/v1", "org/model", "https://host.example"),
        ("http:http://127.0.0.1:8000/v1#tiny", "http://127.0.0.1:8000/v1", "tiny", "http://127.0.0.1:8000"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1", "", "http://[::1]:80"),
        ("http://h/team/v1/#a%20b", "http://h/team/v1", "a b", "http://h/team"),
    ],
)
def test_an_address_is_read(spec, base, model, root):
    found = parse_address(spec)
    assert (found.base, found.model, found.root) == (base, model, root)
    assert is_remote(spec)


@given(st.sampled_from(["http", "https"]), st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.integers(1, 65535))
def test_what_is_shown_is_read_again(scheme, host, port):
    address = parse_address(f"{scheme}://{host}:{port}/v1#m/{host}")
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("http:tiny", "not the address"),
        ("http://", "not the address"),
        ("http://host:99999/v1", "impossible host or port"),
        ("http://[::1/v1#m", "impossible host or port"),
        ("http://host/v1?key=1#m", r"a part after '\?'"),
    ],
)
def test_what_is_no_address_is_refused(spec, problem):
    with pytest.raises(ConfigError, match=problem) as refused:
        parse_address(spec)
    assert "http://HOST:PORT/v1#MODEL" in refused.value.hint


@pytest.mark.parametrize(
    "spec",
    [
        "https://me:sk-secret@host/v1#m",
        "http://me:sk-secret@host:99999/v1",
        "http://me:sk-secret/more@host/v1",
        "http:me:sk-secret@host",
        "http://me:sk-secret#more@host/v1",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(spec):
    with pytest.raises(ConfigError, match=r"user name or password|impossible host or port") as refused:
        parse_address(spec)
    assert "sk-secret" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("127.0.0.1.example", False),
        ("localhost.example", False),
    ],
)
def test_loopback_is_this_machine_and_nothing_else(host, here):
    assert ServerAddress(f"http://{host}:8000/v1").loopback == here


def test_a_localhost_that_leads_elsewhere_is_not_this_machine(monkeypatch):
    monkeypatch.setattr(
        "socket.getaddrinfo", lambda *_: [(0, 0, 0, "", ("127.0.0.1", 0)), (0, 0, 0, "", ("10.1.1.1", 0))]
    )
    assert not ServerAddress("http://localhost:8000/v1").loopback
