"""Answers that would be wrong are refused: none becomes a number."""

import pytest
from tokenizers import normalizers

from tests.conftest import byte_tokenizer
from tests.lm.remote import server as fake
from tests.lm.remote.conftest import prompts, scores
from zicl.exceptions import ModelError, ModelNotFoundError, ServerError, TokenizationError
from zicl.lm.remote.open import open_remote


@pytest.fixture
def changed(running, opened):
    """Opens a model, and changes the answers of its server from then on."""

    def change(kind, how):
        server = running(kind)
        remote = opened(server)
        server.change = how
        return remote

    return change


def test_a_server_without_echo_is_refused_with_the_reasons(running, opened):
    class NoEcho(fake.Davinci):
        def completions(self, body):
            return super().completions({**body, "echo": False})

    with pytest.raises(ServerError, match="does not repeat the prompt") as refused:
        opened(running(NoEcho))
    assert "Unrecognized request argument" in refused.value.message
    assert "what works: vLLM" in refused.value.hint


class LlamaServer(fake.Server):
    """llama.cpp's own: takes any option, and gives numbers of what it generates, in the shape of chat interfaces."""

    def models(self, body):
        return {"data": [{"id": self.name, "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": 512}}]}

    def more(self):
        # It looks for the text under another name.
        return {"/tokenize": lambda body: {"tokens": self.encode(body.get("content", ""))}}

    def completions(self, body):
        chosen = {"id": 5, "token": "!", "bytes": [33], "logprob": -0.5}
        numbers = {"content": [{**chosen, "top_logprobs": [chosen]}]} if body.get("logprobs") else None
        return {"choices": [{"text": "!", "index": 0, "logprobs": numbers, "finish_reason": "length"}]}


@pytest.mark.parametrize("name", ["tiny", None])
def test_llama_cpps_own_server_is_refused_with_what_to_start(name, running, opened):
    match = "gives no log-likelihoods" if name else "no endpoint for its tokenizer"
    with pytest.raises(ModelError, match=match) as refused:
        opened(running(LlamaServer), name)
    assert "llama_cpp.server --model FILE --logits_all true" in refused.value.hint


def test_every_line_of_a_servers_reason_is_shown(running, opened):
    """vLLM's first line only counts the errors."""
    server = running(fake.VLLM)
    remote = opened(server)
    message = "2 validation errors:\n  {'type': 'missing', 'loc': 'body.prompt'}\n  {'type': 'list_type'}"
    server.faults.append(lambda handler: handler.send(400, {"error": {"message": message}}) or True)
    with pytest.raises(ServerError, match=r"2 validation errors: \{'type': 'missing', 'loc': 'body.prompt'\}"):
        scores(remote)


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

    with pytest.raises(ServerError, match="gives different texts the same score"):
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
def test_log_probabilities_that_are_cut_short_are_an_error(kind, changed):
    remote = changed(kind, _cut_lists)
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
def test_lists_of_another_shape_are_an_error(name, wrong, changed):
    def change(answer):
        for choice in answer.get("choices", []):
            choice["logprobs"][name] = wrong(choice["logprobs"][name])
        return answer

    with pytest.raises(ServerError, match="the answer of"):
        scores(changed(fake.LlamaCpp, change))


def test_a_server_that_does_not_say_what_it_used(changed, right):
    assert scores(changed(fake.VLLM, lambda answer: {**answer, "usage": "a lot"})) == right


@pytest.mark.parametrize("number", [None, float("nan"), -9999.0, 3.0, "low"])
def test_what_is_no_log_likelihood_is_an_error(number, changed):
    def change(answer):
        if "meta_info" in answer:
            answer["meta_info"]["input_token_logprobs"][-1][0] = number
        return answer

    with pytest.raises(ServerError, match="where a log-likelihood was expected"):
        scores(changed(fake.SGLang, change))


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
