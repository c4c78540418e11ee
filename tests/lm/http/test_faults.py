"""A misbehaving server: each fault ends in the right retry or the right error, and never in a wrong number."""

import logging
import tempfile

import pytest
from tokenizers import normalizers

from tests.conftest import byte_tokenizer, tiny_model
from tests.lm.http import server as fake
from tests.lm.http.conftest import prompts, tokenizer
from zicl.exceptions import BudgetError, ModelError, ModelNotFoundError, ServerError, TokenizationError
from zicl.lm.http.open import open_remote
from zicl.lm.http.settings import RemoteSettings


def scores(lm, inference="channel"):
    return [row.tolist() for branches in lm.score(prompts(lm, inference, 2)) for row in branches]


@pytest.fixture(scope="module")
def right():
    """The numbers as the same server gives them when nothing goes wrong: compared to the last digit."""
    server = fake.VLLM()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZICL_HOME", folder)
        remote = open_remote(server.spec, RemoteSettings(tokenizer="tiny"), load_tokenizer=tokenizer)
        found = scores(remote)
        remote.close()
    server.close()
    return found


# -- passing faults: asked again, and the numbers are right -------------------------------------------


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
    with pytest.raises(ServerError, match="left alone for 86400 seconds"):
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
    with pytest.raises(ServerError, match=r"4 attempts; at last: 500: not now") as failed:
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


# -- answers that would be wrong: refused -------------------------------------------------------------


def test_a_server_without_echo_is_refused_with_the_reasons(running, opened):
    class NoEcho(fake.Davinci):
        def completions(self, body):
            return super().completions({**body, "echo": False})

    with pytest.raises(ServerError, match="does not repeat the prompt") as refused:
        opened(running(NoEcho))
    assert "Unrecognized request argument" in refused.value.message
    assert "what works: vLLM" in refused.value.hint


def test_a_chat_server_is_refused(running, opened):
    class Chat(fake.Server):
        def answer(self, path, body):
            if path == "/v1/models":
                return self.models(body)
            raise fake.RefusalError(404, "This is a chat model")

    with pytest.raises(ServerError, match="This is a chat model"):
        opened(running(Chat))


def test_numbers_that_are_one_token_off_are_refused(running, opened):
    """What llama-cpp-python gives without a first token, and no first token to put before it."""
    raw = byte_tokenizer()
    raw.bos_token = None
    with pytest.raises(ServerError, match="one token off"):
        opened(running(fake.LlamaCpp), hf_tokenizer=raw)


def test_a_server_that_scores_everything_alike_is_refused(running, opened):
    class Constant(fake.SGLang):
        def rows(self, tokens):
            return super().rows(tokens) * 0 - 2.0

    with pytest.raises(ServerError, match="scores different texts alike"):
        opened(running(Constant))


def _cut_lists(answer):
    for choice in answer.get("choices", []):
        if choice.get("prompt_logprobs"):
            choice["prompt_logprobs"] = choice["prompt_logprobs"][:-2]
        if choice.get("logprobs"):
            choice["logprobs"] = {key: value[:-2] for key, value in choice["logprobs"].items()}
    if "meta_info" in answer:
        answer["meta_info"]["input_token_logprobs"] = answer["meta_info"]["input_token_logprobs"][:-2]
    return answer


@pytest.mark.parametrize("kind", [fake.VLLM, fake.SGLang, fake.Davinci, fake.LlamaCpp])
def test_log_probabilities_that_are_cut_short_are_an_error(kind, running, opened):
    server = running(kind)
    remote = opened(server)
    server.change = _cut_lists
    for inference in ("direct", "channel"):
        with pytest.raises((ServerError, TokenizationError)):
            remote.score(prompts(remote, inference, 1))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("tokens", lambda values: "none"),
        ("text_offset", lambda values: [None, *values[1:]]),
        ("text_offset", lambda values: {}),
        ("token_logprobs", lambda values: "none"),
    ],
)
def test_lists_of_another_shape_are_an_error(name, wrong, running, opened):
    def change(answer):
        for choice in answer.get("choices", []):
            choice["logprobs"][name] = wrong(choice["logprobs"][name])
        return answer

    server = running(fake.LlamaCpp)
    remote = opened(server)
    server.change = change
    with pytest.raises(ServerError, match="the answer of"):
        remote.score(prompts(remote, "channel", 1))


def test_a_server_that_does_not_say_what_it_used(running, opened, right):
    server = running(fake.VLLM)
    remote = opened(server)
    server.change = lambda answer: {**answer, "usage": "a lot"}
    assert scores(remote) == right


@pytest.mark.parametrize("number", [None, float("nan"), -9999.0, 3.0, "low"])
def test_what_is_no_log_likelihood_is_an_error(number, running, opened):
    def change(answer):
        if "meta_info" in answer:
            answer["meta_info"]["input_token_logprobs"][-1][0] = number
        return answer

    server = running(fake.SGLang)
    remote = opened(server)
    server.change = change
    with pytest.raises(ServerError, match="where a log-likelihood was expected"):
        remote.score(prompts(remote, "channel", 1))


def test_other_ids_than_those_asked_for_are_an_error(running, opened):
    server = running(fake.VLLM)
    remote = opened(server)
    server.following = False
    with pytest.raises(ServerError, match="no log-likelihood for the tokens"):
        remote.score(prompts(remote, "direct", 1))


@pytest.mark.parametrize("kind", [fake.VLLM, fake.SGLang, fake.Davinci, fake.LlamaCpp])
def test_a_wrong_tokenizer_is_an_error(kind, running, opened):
    other = byte_tokenizer()
    other.backend_tokenizer.normalizer = normalizers.Replace("the", "eht")
    with pytest.raises(TokenizationError, match="is not the server's tokenizer"):
        opened(running(kind), hf_tokenizer=other)


@pytest.mark.parametrize("kind", [fake.VLLM, fake.SGLang])
def test_a_wrong_tokenizer_of_as_many_tokens_is_an_error_without_an_endpoint_for_tokens(kind, running, opened):
    class Bare(kind):
        def more(self):
            return {path: route for path, route in super().more().items() if "tokenize" not in path}

    other = byte_tokenizer()
    other.backend_tokenizer.normalizer = normalizers.Replace("k", "q")
    with pytest.raises(TokenizationError, match="is not the server's tokenizer"):
        opened(running(Bare), hf_tokenizer=other)
    assert scores(opened(running(Bare)))
    with pytest.raises(ModelError, match="no tokenizer was named"):
        opened(running(Bare), None)


def test_next_tokens_alone_do_not_show_the_tokenizer(running, opened):
    class Bare(fake.VLLM):
        whole = False

        def more(self):
            return {}

    with pytest.raises(ServerError, match="gives no log-likelihoods"):
        opened(running(Bare))


def test_a_model_that_the_server_does_not_have(running, opened):
    server = running(fake.VLLM)
    spec = server.spec
    server.name = "other"
    with pytest.raises(ModelNotFoundError, match="no model 'tiny'") as unknown:
        open_remote(spec, load_tokenizer=lambda name: None)
    assert "other" in unknown.value.hint


# -- keys, cost and what is remembered ----------------------------------------------------------------


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
    shown = [caplog.text, repr(remote), repr(vars(remote)), repr(vars(remote._client)), str(remote.spent)]
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
    assert again.spent.remembered == 6


def test_another_model_under_the_same_name_is_asked_again(running, opened, right):
    server = running(fake.VLLM)
    assert scores(opened(server)) == right
    server.model = tiny_model("gpt2")
    changed = opened(server)
    assert scores(changed) != right
    assert changed.spent.remembered == 0


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
    probed = whole.spent.cost
    tokens = sum(len(p.tokens(b)) for p in prompts(whole, "channel", 2) for b in range(3))
    needed = (tokens * 1000 + 6 * 2000) / 1e6
    limit = probed + needed * 0.6
    stopped = opened(server, max_cost=limit, **price)
    with pytest.raises(BudgetError, match="could pass the limit") as stop:
        scores(stopped)
    assert "goes on from here" in stop.value.hint
    assert probed < stopped.spent.cost <= limit
    goes_on = opened(server, **price)
    assert scores(goes_on) == right
    total = stopped.spent.cost + goes_on.spent.cost - 2 * probed
    assert total == pytest.approx(needed)
    assert goes_on.spent.remembered == stopped.spent.requests - whole.spent.requests > 0


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
