"""A real llama_cpp.server against the transformers backend: the same winners and margins on real prompts.

llama.cpp quantises activations too where weights are quantised, so a few margins near 0 may change their sign; with
float32 weights none does.
"""

import json
import sys

import numpy as np
import pytest

from tests.server.llama_server import llama_server
from tests.server.weights import float32, quantised
from zicl._random import rng
from zicl.demos.prompt import Demonstration, PromptBuilder
from zicl.demos.template import get_template
from zicl.examples import reviews
from zicl.lm.http.settings import RemoteSettings
from zicl.lm.load import load_lm

pytestmark = pytest.mark.server

COUNT, WORDS = 50, ("terrible", "great")
# What the file may change: winners of 50, and how like the order of the margins is.
FILES = {"quantised": (quantised, 48, 0.99), "float32": (float32, 50, 0.999)}


def real_prompts(lm, inference):
    """Film-review lines as demonstrations, with synonyms of drawn labels as Z-ICL has them, and inputs.

    Few and short, for the server sorts its vocabulary per token.
    """
    texts = [text for text, _ in reviews("rotten_tomatoes", offline=True) if len(text) < 60]
    builder = PromptBuilder(lm.tokenizer, get_template("review"), inference, context=lm.context, bos=lm.adds_bos)
    for number in range(COUNT):
        chosen = texts[7 * number : 7 * number + 3]
        drawn = rng(100, str(number), "labels").choice(["bad", "good"], size=2).tolist()
        demos = [Demonstration(text, words) for text, words in zip(chosen[:2], drawn, strict=True)]
        yield builder.build(chosen[2], demos, WORDS)


@pytest.fixture(scope="module", params=FILES)
def served(request, tmp_path_factory):
    make, winners, order = FILES[request.param]
    with llama_server(make(), tmp_path_factory.mktemp("server") / "log.txt") as address:
        settings = RemoteSettings(tokenizer="smollm2-135m", timeout=600, requests=2, context=2047)
        lm = load_lm(address, offline=True, remote=settings)
        yield lm, winners, order
        lm.close()


def margins(scores):
    sums = np.array([[row.sum(dtype=np.float64) for row in branches] for branches in scores])
    return sums[:, 1] - sums[:, 0]


@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_it_agrees_with_the_transformers_backend(served, real_lm, inference, request, capsys):
    from scipy.stats import spearmanr

    lm, winners, order = served
    # The server's numbers are right only behind a first token, so both models read one.
    assert (lm.way, lm.adds_bos) == ("echo of text behind bos", True)
    prompts = list(real_prompts(lm, inference))
    ours, theirs = margins(real_lm.score(prompts)), margins(lm.score(prompts))
    found = {
        "case": request.node.callspec.id,
        "prompts": len(prompts),
        "same winner": int((np.sign(ours) == np.sign(theirs)).sum()),
        "rank correlation": round(float(spearmanr(ours, theirs).statistic), 5),
        "largest difference of a margin": round(float(np.abs(ours - theirs).max()), 5),
    }
    with capsys.disabled():
        # The result of this layer, to be read.
        sys.stdout.write(json.dumps(found) + "\n")
    assert found["same winner"] >= winners
    assert found["rank correlation"] > order
