"""A real vLLM against the transformers backend: the same numbers, whatever else is requested beside them."""

import json
import sys
import threading
from itertools import islice

import numpy as np
import pytest

from tests.lab.evaluate.conftest import make_experiment, write_task
from tests.server.agreement import agreement, differences, margins, real_prompts
from tests.vllm.conftest import serve
from zicl.exceptions import ServerError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.run import evaluate
from zicl.lm.load import load_lm

pytestmark = pytest.mark.vllm

BOTH = pytest.mark.parametrize("inference", ["direct", "channel"])
# Labels that part late, so that their trie has nodes.
PHRASES = ("not good at all", "not good", "not bad at all", "great")
# Longer than a block of the prefix cache, which has 128 tokens.
LONG = {"demonstrations": 10, "words": PHRASES}


@pytest.fixture
def show(request, capsys):
    """Write a result of this layer, to be read."""

    def write(**found):
        with capsys.disabled():
            sys.stdout.write(json.dumps({"case": request.node.name, **found}) + "\n")

    return write


def apart(ours, theirs):
    """The largest and the median difference of a token's log-likelihood."""
    found = differences(ours, theirs)
    return {"largest of a token": float(found.max()), "median of a token": float(np.median(found))}


@BOTH
def test_it_agrees_with_the_transformers_backend(server, opened, real_lm, inference, show):
    lm = opened(server)
    assert (lm.way, lm.adds_bos) == ("prompt_logprobs + logprob_token_ids", False)
    assert lm.context == server.context - 1
    prompts = list(real_prompts(lm, inference))
    ours, theirs = real_lm.score(prompts), lm.score(prompts)
    found = agreement(margins(ours), margins(theirs))
    show(**found, **apart(ours, theirs))
    assert found["same winner"] == found["prompts"]
    assert differences(ours, theirs).max() < 1e-3


@BOTH
def test_bfloat16_is_as_far_from_float32_as_it_is_here(half, opened, real_lm, inference, show):
    server, here = half
    lm = opened(server)
    prompts = list(real_prompts(lm, inference))
    exact, ours, theirs = real_lm.score(prompts), here.score(prompts), lm.score(prompts)
    local, remote = differences(exact, ours), differences(exact, theirs)
    show(
        server=agreement(margins(exact), margins(theirs)) | apart(exact, theirs),
        here=agreement(margins(exact), margins(ours)) | apart(exact, ours),
        between=agreement(margins(ours), margins(theirs)) | apart(ours, theirs),
    )
    assert np.median(remote) < 1.5 * np.median(local)
    assert np.sqrt(np.mean(remote**2)) < 1.5 * np.sqrt(np.mean(local**2))


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The same weights in bfloat16, on a server and here."""
    here = load_lm("smollm2-135m", dtype="bfloat16", offline=True)
    for server in serve(tmp_path_factory.mktemp("half"), dtype="bfloat16"):
        yield server, here


@BOTH
def test_prompts_that_the_server_computes_in_parts(server, opened, real_lm, inference, show):
    lm = opened(server)
    prompts = list(islice(real_prompts(lm, inference, demonstrations=40, longest=200), 3))
    assert all(len(prompt.tokens(0)) > 1.5 * server.chunk for prompt in prompts)
    ours, theirs = real_lm.score(prompts), lm.score(prompts)
    show(**apart(ours, theirs))
    assert differences(ours, theirs).max() < 1e-3


def test_direct_inference_keeps_demonstrations_in_the_prefix_cache(server, opened, real_lm, show):
    lm = opened(server)
    prompts = list(islice(real_prompts(lm, "direct", **LONG), 5))
    counted = ("prefix_cache_queries", "prefix_cache_hits")
    before, used = [server.metric(name) for name in counted], lm.usage
    theirs = lm.score(prompts)
    asked, hits = (server.metric(name) - old for name, old in zip(counted, before, strict=True))
    nodes = {
        (n, row.scored.tokens[:m]) for n, p in enumerate(prompts) for row in p.branches for m in range(len(row.scored))
    }
    # One request of one token for every node of the labels' trie.
    assert lm.usage.requests - used.requests == len(nodes)
    assert lm.usage.tokens_out - used.tokens_out == len(nodes)
    assert asked == lm.usage.tokens_in - used.tokens_in
    show(tokens=asked, of_them_cached=hits, **apart(real_lm.score(prompts), theirs))
    # A block is found again unless its first request is still being computed.
    assert hits > 0
    assert differences(real_lm.score(prompts), theirs).max() < 1e-3


def test_channel_inference_cannot_use_the_prefix_cache(server, opened):
    lm = opened(server)
    prompts = list(islice(real_prompts(lm, "channel", **LONG), 2))
    lm.score(prompts)
    before, computed = server.metric("prefix_cache_hits"), server.metric("prompt_tokens_cached")
    lm.score(prompts)
    assert (server.metric("prefix_cache_hits"), server.metric("prompt_tokens_cached")) == (before, computed)


@BOTH
def test_numbers_do_not_depend_on_what_else_is_requested(server, opened, inference, show):
    together, alone = opened(server, requests=16), opened(server, requests=1)
    prompts = list(islice(real_prompts(alone, inference, **LONG), 12))
    one, many, again = alone.score(prompts), together.score(prompts), alone.score(prompts[::-1])[::-1]
    show(together=apart(one, many), in_reverse=apart(one, again))
    assert differences(one, many).max() < 1e-3
    assert differences(one, again).max() < 1e-3


def test_the_servers_own_tokenizer_writes_the_same_prompts(server, opened):
    named, own = opened(server), opened(server, tokenizer=None)
    for inference in ("direct", "channel"):
        prompts = [list(islice(real_prompts(lm, inference), 3)) for lm in (named, own)]
        assert prompts[0] == prompts[1]
    assert named.identity == own.identity


def test_a_prompt_that_is_too_long_is_refused(server, opened):
    lm = opened(server, context=2 * server.context)
    prompts = list(islice(real_prompts(lm, "channel", demonstrations=80, longest=200), 1))
    assert len(prompts[0].tokens(0)) > server.context
    with pytest.raises(ServerError, match="context") as refused:
        lm.score(prompts)
    assert "--server context=TOKENS" in str(refused.value)


def test_a_run_resumes_where_the_server_was_killed(server, opened, own_answers, index, tmp_path, monkeypatch):
    experiment = make_experiment(write_task(tmp_path, test=8), methods=["no-demos", "z-icl", "icl-gold"], seeds=[13])

    def run(lm, name):
        return evaluate(ExperimentContext(experiment, lm=lm, index=index), tmp_path / name)

    whole = opened(server)
    assert run(whole, "whole").complete
    needed = whole.usage.requests

    stopped = opened(server, recall=True, attempts=2)
    meter = stopped._client.meter
    answered, first = meter.answered, threading.Lock()

    def kill_after_a_third(*numbers):
        answered(*numbers)
        # Several threads are answered at once: the count may step over a number, and only the first of them kills.
        if meter.usage.requests >= needed // 3 and first.acquire(blocking=False):
            server.kill()

    monkeypatch.setattr(meter, "answered", kill_after_a_third)
    with pytest.raises(ServerError, match="did not answer in 2 attempts"):
        run(stopped, "stopped")
    server.start()

    resumed = opened(server, recall=True)
    assert run(resumed, "stopped").complete
    # What was answered before is not asked again; opening the model asks some.
    assert resumed.usage.requests + stopped.usage.requests < needed + 20
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


def files(folder):
    """The content of all files of results but locks and times."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith((".lock", "time.json"))
    }
