"""A run on a server: its key, its cost, its cache, and the state after an error."""

import logging

import pytest

from tests.conftest import tiny_model
from tests.lm.remote import server as fake
from tests.lm.remote.conftest import prompts, scores, tokenizer
from zicl.exceptions import BudgetError, ServerError
from zicl.lm.remote.open import open_remote
from zicl.lm.remote.settings import RemoteSettings


def test_the_key_comes_from_the_environment_and_is_shown_to_nobody(running, opened, monkeypatch, caplog, home):
    caplog.set_level(logging.DEBUG)
    server = running(fake.VLLM, key="sk-very-secret")
    with pytest.raises(ServerError, match="a key is needed") as none:
        opened(server)
    assert none.value.status == 401
    monkeypatch.setenv("ZICL_API_KEY", "sk-wrong-secret")
    with pytest.raises(ServerError, match="was not accepted") as wrong:
        opened(server)
    # The server's own message repeats it.
    assert "sk-" not in str(wrong.value)
    monkeypatch.setenv("ZICL_API_KEY", "sk-very-secret")
    remote = opened(server)
    scores(remote)
    shown = [caplog.text, repr(remote), repr(vars(remote)), repr(vars(remote._client)), str(remote.usage)]
    assert "sk-" not in "".join(shown)
    assert not any(b"sk-very" in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_key_is_hidden_before_a_message_is_cut(running, opened, monkeypatch):
    monkeypatch.setenv("ZICL_API_KEY", "sk-very-secret")
    server = running(fake.VLLM, key="sk-very-secret")
    server.faults.append(lambda handler: handler.send(400, {"error": "x" * 295 + " sk-very-secret"}) or True)
    with pytest.raises(ServerError, match="xxx") as refused:
        opened(server)
    assert "sk-" not in str(refused.value)


def test_an_error_ends_the_attempts_of_the_others(running, home):
    server = running(fake.VLLM)
    # No clock of the test's own: waits are real, and would take minutes.
    remote = open_remote(server.spec, RemoteSettings(tokenizer="tiny", requests=2), load_tokenizer=tokenizer)
    before = server.count("/v1/completions")
    server.faults += [fake.refuse(503, Retry_After="120"), fake.refuse(400), *[fake.refuse(503, Retry_After="120")] * 9]
    with pytest.raises(ServerError, match="400"):
        scores(remote)
    # The two that were under way, and one that may have begun before the error was seen.
    assert server.count("/v1/completions") - before <= 3
    server.faults.clear()
    assert scores(remote)
    remote.close()


def test_what_was_answered_is_not_asked_again(running, opened, right):
    server = running(fake.VLLM)
    assert scores(opened(server)) == right
    again = opened(server)
    asked = len(server.asked)
    assert scores(again) == right
    assert len(server.asked) == asked
    assert again.usage.cached == 6


def test_another_model_under_the_same_name_is_asked_again(running, opened, right):
    server = running(fake.VLLM)
    assert scores(opened(server)) == right
    server.model = tiny_model("gpt2")
    changed = opened(server)
    assert scores(changed) != right
    assert changed.usage.cached == 0


def test_an_error_loses_no_answer(running, opened, right):
    server = running(fake.VLLM)
    remote = opened(server, requests=1, attempts=1)
    before = server.count("/v1/completions")

    server.faults += [lambda handler: False] * 3 + [fake.refuse(500)] * 3
    with pytest.raises(ServerError):
        scores(remote)
    failed = 3 - len(server.faults)
    server.faults.clear()
    assert scores(remote) == right
    # Six questions in all, and each was answered once.
    assert server.count("/v1/completions") - before - failed == 6
    assert failed >= 1


def test_the_cost_stops_a_run_and_the_same_run_goes_on(running, opened, right):
    server = running(fake.VLLM)
    price = {"price_in": 1000.0, "price_out": 2000.0}
    whole = opened(server, **price)
    probed = whole.usage.cost
    tokens = sum(len(p.tokens(b)) for p in prompts(whole, "channel", 2) for b in range(3))
    needed = (tokens * 1000 + 6 * 2000) / 1e6
    limit = probed + needed * 0.6
    stopped = opened(server, max_cost=limit, **price)
    with pytest.raises(BudgetError, match="could exceed the limit") as stop:
        scores(stopped)
    assert "may spend as much again" in stop.value.hint
    assert probed < stopped.usage.cost <= limit
    goes_on = opened(server, **price)
    assert scores(goes_on) == right
    total = stopped.usage.cost + goes_on.usage.cost - 2 * probed
    assert total == pytest.approx(needed)
    assert goes_on.usage.cached == stopped.usage.requests - whole.usage.requests > 0


def test_requests_run_at_once_up_to_the_limit(running, opened, right):
    class Slow(fake.VLLM):
        def answer(self, path, body):
            fake.time.sleep(0.03)
            return super().answer(path, body)

    server = running(Slow)
    remote = opened(server, requests=3)
    seen = []
    remote.score(prompts(remote, "channel", 2), seen.append)
    assert sum(seen) == 2
    assert server.most_under_way == 3
