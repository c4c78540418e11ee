"""The table of backends: the first that works is used."""

import pytest

from tests.lm.remote import server as fake
from zicl.exceptions import ServerError
from zicl.lm.remote import probe
from zicl.lm.remote.backends.sglang import open_generate


def test_a_backend_is_added_by_one_entry_of_the_table(running, opened, monkeypatch):
    def open_custom(client, model, tokenizer):
        backend = open_generate(client, model, tokenizer)
        backend.name = "custom"
        return backend

    monkeypatch.setattr(probe, "BACKENDS", (open_custom, *probe.BACKENDS))
    assert opened(running(fake.SGLang)).way == "custom"
    assert opened(running(fake.Davinci)).way == "echo of tokens"


def test_without_a_backend_a_server_is_refused(running, opened, monkeypatch):
    monkeypatch.setattr(probe, "BACKENDS", ())
    with pytest.raises(ServerError, match="gives no log-likelihoods"):
        opened(running(fake.Davinci))


def test_a_backend_is_tried_with_few_requests(running, opened):
    """One request shows the tokens, two the log-likelihoods, and one those of next tokens."""
    server = running(fake.VLLM)
    opened(server)
    assert server.count("/v1/completions") == 4
