"""The test server of tests/lm/remote answers as a real vLLM does: the same keys, kinds of values and refusals."""

import json
import urllib.error
import urllib.request

import pytest

from tests.lm.remote import server as fake
from tests.vllm.vllm_server import NAME, VLLMServer

pytestmark = pytest.mark.vllm

COMPLETIONS = "/v1/completions"
NUMBERS = {"prompt": [20, 30, 40, 50], "max_tokens": 1, "temperature": 0}
NEXT = {"logprobs": 2, "logprob_token_ids": [10, 11], "return_tokens_as_token_ids": True}
REQUESTS = {
    "models": ("/v1/models", None),
    "tokenize": ("/tokenize", {"prompt": "a\nb", "add_special_tokens": False}),
    "tokenize nothing": ("/tokenize", {"prompt": "", "add_special_tokens": True}),
    "detokenize": ("/detokenize", {"tokens": [20, 30]}),
    "prompt": (COMPLETIONS, {**NUMBERS, "prompt_logprobs": 0}),
    "prompt of text": (COMPLETIONS, {**NUMBERS, "prompt": "a\nb c", "prompt_logprobs": 0}),
    "next token": (COMPLETIONS, {**NUMBERS, **NEXT}),
    "many next tokens": (COMPLETIONS, {**NUMBERS, **NEXT, "logprobs": 30, "logprob_token_ids": [*range(20, 50)]}),
    "no numbers": (COMPLETIONS, NUMBERS),
    "empty": (COMPLETIONS, {**NUMBERS, "prompt": []}),
    "unknown token": (COMPLETIONS, {**NUMBERS, "prompt": [20, 99_999]}),
    "unknown model": (COMPLETIONS, {**NUMBERS, "model": "other"}),
    "too many logprobs": (COMPLETIONS, {**NUMBERS, "logprobs": 21}),
    "too long": (COMPLETIONS, {**NUMBERS, "prompt": [20] * (VLLMServer.context + 1)}),
    "full": (COMPLETIONS, {**NUMBERS, "prompt": [20] * VLLMServer.context}),
}


@pytest.fixture(scope="module")
def tested():
    """The test server, as large and with the name of the real one."""
    running = fake.VLLM()
    running.name, running.context = NAME, VLLMServer.context
    yield running
    running.close()


@pytest.mark.parametrize("case", REQUESTS)
def test_the_test_server_answers_like_a_real_one(case, server, tested):
    path, body = REQUESTS[case]
    real = answer(f"http://127.0.0.1:{server.port}{path}", body)
    ours = answer(tested.spec.partition("/v1#")[0] + path, body)
    assert ours[0] == real[0]
    assert shape(ours[1]) <= shape(real[1]), real[1]
    if real[0] != 200 and "error" in real[1]:
        said, meant = (one[1]["error"]["message"] for one in (real, ours))
        # Its reasons too, up to what is a matter of the model.
        assert said.split()[:3] == meant.split()[:3]


def answer(url, body):
    data = None if body is None else json.dumps({"model": NAME, **body}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return found.status, json.loads(found.read())
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.loads(refusal.read())


def shape(value, path=""):
    """Every place in an answer with the kind of its value; numbers and texts of tokens are alike."""
    if isinstance(value, dict):
        places = [shape(each, f"{path}/{token_or_key(key)}") for key, each in value.items()]
    elif isinstance(value, list):
        places = [shape(each, f"{path}/*") for each in value]
    else:
        return {(path, type(value).__name__)}
    return set().union(*places)


def token_or_key(key):
    if key.startswith("token_id:"):
        return "token_id"
    return "number" if key.isdigit() else key
