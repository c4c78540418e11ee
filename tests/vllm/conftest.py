"""A real vLLM for the tests of this folder, and models on it."""

import os

import pytest

from tests.server.llama_server import free_port
from tests.vllm.vllm_server import PYTHON, VLLMServer
from zicl._util.files import home
from zicl.lm.load import load_lm
from zicl.lm.remote.settings import RemoteSettings


def serve(folder, **options):
    if not os.path.exists(PYTHON):
        pytest.skip(f"vLLM is not installed in {PYTHON}: make test-vllm")
    server = VLLMServer(free_port(), folder / "log.txt", **options)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server with float32 weights."""
    yield from serve(tmp_path_factory.mktemp("vllm"))


@pytest.fixture
def own_answers(tmp_path, monkeypatch):
    """Cache answers in the folder of the test; the models stay where they are."""
    folder, assets = tmp_path / "home", home() / "assets"
    folder.mkdir()
    (folder / "assets").symlink_to(assets)
    monkeypatch.setenv("ZICL_HOME", str(folder))


@pytest.fixture
def opened():
    """Open models; every number is requested unless ``recall`` is given."""
    models = []

    def open_(server, **settings):
        chosen = {"tokenizer": "smollm2-135m", "recall": False, "timeout": 600, **settings}
        models.append(load_lm(server.address, offline=True, remote=RemoteSettings(**chosen)))
        return models[-1]

    yield open_
    for model in models:
        model.close()
