"""Servers of the tiny models: in this process for the addresses, on a real port where the connection matters."""

import json
import threading
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.testclient import TestClient

from tests.conftest import DOCUMENTS, make_index
from tests.waiting import WAIT_SECONDS
from zicl import Retrieval, ZICLClassifier
from zicl.apps.serve.app import make_app
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.page import Page
from zicl.apps.serve.security import Access
from zicl.apps.serve.server import listen, uvicorn_config
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
    return ZICLClassifier(
        served_index, ["terrible", "great"], lm, retrieval=Retrieval(k=3), offline=True, method="z-icl"
    ).fit()


class GatedLM:
    """A language model that scores once its gate is open."""

    def __init__(self, lm):
        self._lm, self.gate, self.begun, self.calls = lm, threading.Event(), threading.Event(), []

    def __getattr__(self, name):
        return getattr(self._lm, name)

    def __deepcopy__(self, memo):
        return self

    def score(self, prompts, progress=None):
        self.calls.append(len(prompts))
        self.begun.set()
        assert self.gate.wait(WAIT_SECONDS)
        return self._lm.score(prompts, progress)


@pytest.fixture
def gated(served_index, lm):
    """A classifier whose model waits; the gate is opened at the end whatever happens."""
    model = GatedLM(lm)
    yield ZICLClassifier(
        served_index, ["terrible", "great"], model, retrieval=Retrieval(k=3), offline=True, method="z-icl"
    ).fit()
    model.gate.set()


def same(answer, result):
    """Check that an answer of the server equals the library's."""
    assert answer["label"] == result.label
    assert answer["margin"] == pytest.approx(result.margin, abs=1e-4)
    assert answer["probabilities"] == pytest.approx(result.probabilities, abs=1e-4)
    # Without a language model there are none.
    log_likelihoods = {s.label: s.log_likelihood for s in result.scores if s.log_likelihood is not None}
    assert answer["log_likelihoods"] == pytest.approx(log_likelihoods, abs=1e-4)


def loading(classifier, limits=None):
    """A service, and what waits until its classifier is loaded."""
    service, loaded = Service(lambda: classifier, limits or RequestLimits()), threading.Event()
    service.on_loaded = loaded.set

    def wait():
        assert loaded.wait(WAIT_SECONDS)
        assert service.failure is None, service.failure

    return service, wait


@contextmanager
def asked(classifier, limits=None, access=None):
    """A client of an application in this process, ready to answer; ``client.service`` is what it runs."""
    (service, wait), access = loading(classifier, limits), access or Access()
    with TestClient(make_app(service, access, PAGE), base_url=f"http://127.0.0.1:{access.port}") as client:
        client.service = service
        wait()
        yield client


@pytest.fixture(scope="module")
def client(classifier):
    with asked(classifier) as found:
        yield found


@contextmanager
def listening(classifier, limits=None):
    """A server on a real port of this machine: its address and its service."""
    service, wait = loading(classifier, limits)
    listener, access = listen(Access(port=0))
    config = uvicorn_config(make_app(service, access, PAGE), WAIT_SECONDS)
    # A test may take its time between two requests of a connection.
    config.timeout_keep_alive = WAIT_SECONDS
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    with listener:
        thread.start()
        try:
            wait()
            yield f"http://127.0.0.1:{access.port}", service
        finally:
            server.should_exit = True
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive()
