"""A real process: started by the command, ended by a signal under load."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import pytest

from tests.conftest import DOCUMENTS
from tests.waiting import WAIT_SECONDS, wait_until
from zicl.corpus.builder import build_corpus
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import find_sources
from zicl.retrieve.builder import build_index
from zicl.retrieve.encoder import load_encoder


@pytest.fixture
def corpus(tmp_path, jsonl, encoder_folder):
    built = build_corpus(find_sources([jsonl]), tmp_path / "raw.zicl", BuildOptions())
    build_index(built, load_encoder(str(encoder_folder), offline=True))
    return tmp_path / "raw.zicl"


# The command, with a model slow enough that most texts still wait when the signal comes.
SLOW = """
import sys, time
from zicl.apps.serve.engine import Engine
from zicl.cli import main
compute = Engine.compute
Engine.compute = lambda self, jobs: time.sleep(1) or compute(self, jobs)
sys.argv[0] = "zicl"
main()
"""


@pytest.fixture
def server(corpus, lm_folder, tmp_path):
    """The process and its address; it is ready."""
    options = [
        "--labels",
        "terrible,great",
        "--method",
        "z-icl",
        "--lm",
        lm_folder,
        "--k",
        "3",
        "--offline",
        "--port",
        "0",
    ]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW, "serve", corpus, *options],
            stdout=said,
            stderr=said,
            env={**os.environ, "OMP_NUM_THREADS": "2"},
        )
    try:
        wait_until(lambda: "http://" in (tmp_path / "said").read_text())
        address = re.search(r"http://[\d.:]+", (tmp_path / "said").read_text())[0]
        with httpx.Client(base_url=address, timeout=WAIT_SECONDS) as client:
            # It answers before the models are there. Asked seldom: it needs the processor to load them.
            assert client.get("/healthz").status_code == 200
            wait_until(lambda: client.get("/readyz").status_code == 200, pause=0.2)
        yield process, address, tmp_path / "said"
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)


def ask(address, number):
    texts = [f"{text} Part {part} of client {number}." for part in range(8) for text in DOCUMENTS]
    body = {"texts": texts, "stream": number % 2 == 1}
    answer = httpx.post(f"{address}/v1/classify", json=body, timeout=WAIT_SECONDS)
    return answer.status_code, [json.loads(line) for line in answer.text.splitlines()]


def counter(address, name):
    text = httpx.get(f"{address}/metrics", timeout=WAIT_SECONDS).text
    return float(re.search(rf"^{name} (.*)$", text, re.MULTILINE)[1])


def test_a_signal_under_load_leaves_no_request_without_an_answer(server):
    process, address, said = server
    with ThreadPoolExecutor(12) as clients:
        asked = [clients.submit(ask, address, number) for number in range(12)]
        # All texts are in the queue but for the group that is being computed, and some are computed.
        wait_until(lambda: counter(address, "zicl_queue_waiting") + counter(address, "zicl_computed_total") >= 944)
        wait_until(lambda: counter(address, "zicl_computed_total"))
        process.send_signal(signal.SIGTERM)
        answers = [each.result(WAIT_SECONDS) for each in asked]
    assert process.wait(WAIT_SECONDS) == 0
    assert "demonstrations show terrible as bad, great as good\nready\n" in said.read_text()
    assert "stopped" in said.read_text()
    assert "Traceback" not in said.read_text()
    refused = 0
    for status, lines in answers:
        assert status in (200, 503)
        if lines[-1].get("status") == 503:
            refused += 1
            assert lines[-1]["type"] == "urn:zicl:problem:stopping"
        else:
            assert len(lines) == 80 or len(lines[0]["results"]) == 80
    assert refused


def test_it_starts_with_nothing_and_labels_what_it_is_given(encoder_folder, tmp_path):
    command = [sys.executable, "-m", "zicl", "serve", "--port", "0", "--offline", "--encoder", encoder_folder]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
    try:
        address = wait_until(lambda: re.search(r"http://[\d.:]+", (tmp_path / "said").read_text()))[0]
        wait_until(lambda: "ready" in (tmp_path / "said").read_text(), pause=0.2)
        texts = [f"{text} Part {part}." for part in range(3) for text in DOCUMENTS]
        with httpx.Client(base_url=address, timeout=WAIT_SECONDS) as client:
            fit = client.post("/v1/fit", json={"texts": texts, "labels": ["food", "travel"]}).json()
            assert fit["settings"]["pile"] == len(texts)
            answer = client.post("/v1/classify", json={"text": DOCUMENTS[0], "fit": fit["fit"]}).json()
        assert answer["results"][0]["label"] in ("food", "travel")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)


LOADS_FOR_EVER = """
import sys, time
from zicl.cli import main, serve
serve._classifier = lambda *_: time.sleep(3600)
sys.argv = ["zicl", "serve", "--labels", "terrible,great", "--port", "0"]
main()
"""


def test_a_signal_while_the_models_are_loaded_ends_it_at_once():
    process = subprocess.Popen([sys.executable, "-c", LOADS_FOR_EVER], stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://[\d.:]+", process.stderr.readline())[0]
        assert httpx.get(f"{address}/readyz", timeout=WAIT_SECONDS).json()["type"] == "urn:zicl:problem:starting"
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0
        assert process.stderr.read().strip() == "stopped"
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)
        process.stderr.close()
