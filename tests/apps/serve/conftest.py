"""Servers around the tiny models: in this process for the routes, on a real port where the connection matters."""

import json
import threading
import time
from contextlib import contextmanager

import httpx2 as httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

from tests.conftest import DOCUMENTS, make_index
from zicl import Retrieval, ZICLClassifier
from zicl.apps.serve.app import make_app
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.page import Page
from zicl.apps.serve.security import Access
from zicl.apps.serve.server import listen, settings
from zicl.apps.serve.service import Service

PAGE = Page(b"<!doctype html><title>a page</title>", "default-src 'none'")
TEXTS = [f"Take {number}. {text}" for number, text in enumerate(DOCUMENTS)]


@pytest.fixture(scope="session")
def served_index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    raw = folder / "raw.jsonl"
    raw.write_text("".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS), encoding="utf-8")
    return make_index(folder / "raw.zicl", raw)


@pytest.fixture(scope="session")
def classifier(served_index, lm):
    return ZICLClassifier(served_index, ["terrible", "great"], lm, retrieval=Retrieval(k=3), offline=True).fit()


class GatedLM:
    """A language model that scores when it is let."""

    def __init__(self, lm):
        self._lm, self.gate, self.begun, self.calls = lm, threading.Event(), threading.Event(), []

    def __getattr__(self, name):
        return getattr(self._lm, name)

    def __deepcopy__(self, memo):
        return self

    def score(self, prompts, progress=None):
        self.calls.append(len(prompts))
        self.begun.set()
        assert self.gate.wait(20)
        return self._lm.score(prompts, progress)


@pytest.fixture
def gated(served_index, lm):
    """A classifier whose model waits; the gate is opened at the end whatever happens."""
    model = GatedLM(lm)
    yield ZICLClassifier(served_index, ["terrible", "great"], model, retrieval=Retrieval(k=3), offline=True).fit()
    model.gate.set()


def same(told, result):
    """An answer of the server is the library's."""
    assert told["label"] == result.label
    assert told["margin"] == pytest.approx(result.margin, abs=1e-4)
    assert told["probabilities"] == pytest.approx(result.probabilities, abs=1e-4)
    own = {score.label: score.log_likelihood for score in result.scores}
    assert told["log_likelihoods"] == pytest.approx(own, abs=1e-4)


def wait_until(true, seconds=10, pause=0.005):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(pause)


@contextmanager
def asked(classifier, limits=None, access=None):
    """A client of an application in this process, ready to answer; ``client.service`` is what it runs."""
    service, access = Service(lambda: classifier, limits or RequestLimits()), access or Access()
    with TestClient(make_app(service, access, PAGE), base_url=f"http://127.0.0.1:{access.port}") as client:
        client.service = service
        wait_until(lambda: client.get("/readyz").status_code == 200 or service.failure)
        assert service.failure is None
        yield client


@pytest.fixture(scope="module")
def client(classifier):
    with asked(classifier) as found:
        yield found


@contextmanager
def listening(classifier, limits=None):
    """A server on a real port of this machine: its address and its service."""
    service = Service(lambda: classifier, limits or RequestLimits())
    found, access = listen(Access(port=0))
    server = uvicorn.Server(settings(make_app(service, access, PAGE), 60))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
    thread.start()
    address = f"http://127.0.0.1:{access.port}"
    try:
        wait_until(lambda: httpx.get(f"{address}/readyz").status_code == 200 or service.failure)
        assert service.failure is None
        yield address, service
    finally:
        server.should_exit = True
        thread.join(30)
        found.close()
