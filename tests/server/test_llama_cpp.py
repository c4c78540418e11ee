"""A real llama_cpp.server against the transformers backend: the same winners and margins on real prompts.

llama.cpp quantises activations too where weights are quantised: a log-probability is then off by some 0.08. Direct
inference compares two of them; channel inference adds up those of a whole input, and the errors with them, so that
there the bar is what such activations do to the transformers backend itself. With float32 weights nothing is off.
"""

import json
import sys

import numpy as np
import pytest

from tests.server.activations import eight_bit_activations
from tests.server.agreement import agreement, margins, real_prompts
from tests.server.llama_server import llama_server
from tests.server.weights import float32, quantised
from zicl.lm.load import load_lm
from zicl.lm.remote.settings import RemoteSettings

pytestmark = pytest.mark.server

# What the file may change: winners of 50, how like the order of the margins is; and whether activations are rounded.
FILES = {"quantised": (quantised, 48, 0.99, True), "float32": (float32, 50, 0.999, False)}


@pytest.fixture(scope="module", params=FILES)
def served(request, tmp_path_factory):
    make, *bars = FILES[request.param]
    with llama_server(make(), tmp_path_factory.mktemp("server") / "log.txt") as address:
        settings = RemoteSettings(tokenizer="smollm2-135m", timeout=600, requests=2, context=2047)
        lm = load_lm(address, offline=True, remote=settings)
        yield lm, *bars
        lm.close()


@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_it_agrees_with_the_transformers_backend(served, real_lm, inference, request, capsys):
    lm, winners, order, is_rounded = served
    # The server's numbers are right only behind a first token, so both models read one.
    assert (lm.way, lm.adds_bos) == ("echo of text behind bos", True)
    prompts = list(real_prompts(lm, inference))
    ours, theirs = margins(real_lm.score(prompts)), margins(lm.score(prompts))
    found = agreement(ours, theirs)
    report = {"case": request.node.callspec.id, **found}
    if is_rounded:
        with eight_bit_activations(real_lm):
            rounded = margins(real_lm.score(prompts))
        report["8-bit activations here"] = floor = agreement(ours, rounded)
    with capsys.disabled():
        # The result of this layer, to be read.
        sys.stdout.write(json.dumps(report) + "\n")
    if is_rounded and inference == "channel":
        typical = floor["typical difference"]
        assert found["typical difference"] < 1.5 * typical
        # Winners may change only where no more than rounding parts the labels.
        assert np.abs(ours[np.sign(ours) != np.sign(theirs)]).max(initial=0.0) < 3 * typical
        return
    assert found["same winner"] >= winners
    assert found["rank correlation"] > order
