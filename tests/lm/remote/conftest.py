"""Prompts for servers, and a separate cache of answers for each test."""

import tempfile
from functools import partial

import pytest

from tests.conftest import DOCUMENTS
from tests.lm.remote.server import VLLM, tiny
from zicl.lm.remote.open import open_remote
from zicl.lm.remote.settings import RemoteSettings
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.builder import LabelledText, PromptBuilder
from zicl.prompt.template import get_template

WORDS = ("great", "terrible", "great fun")


def tokenizer(name, hf_tokenizer=None):
    return PlainTokenizer(hf_tokenizer or tiny()[1], name)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Cache answers in the folder of the test, and send no key of this machine."""
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))
    for name in ("ZICL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def running():
    """Start servers, and stop them at the end."""
    servers = []

    def start(kind, **options):
        servers.append(kind(**options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def slept():
    return []


@pytest.fixture
def opened(slept):
    """Open models; the tokenizer "tiny" is that of the tests; waits are recorded and not slept."""
    models = []

    def open_(server, name="tiny", hf_tokenizer=None, **settings):
        chosen = RemoteSettings(tokenizer=name, **{"timeout": 20, **settings})
        load = partial(tokenizer, hf_tokenizer=hf_tokenizer)
        models.append(open_remote(server.spec, chosen, load_tokenizer=load, sleep=slept.append))
        return models[-1]

    yield open_
    for model in models:
        model.close()


def prompts(lm, inference, count=3, probes=()):
    """Prompts with two demonstrations each, as the classifier writes them."""
    builder = PromptBuilder(lm.tokenizer, get_template("review"), inference, context=lm.context, bos=lm.adds_bos)
    demos = [LabelledText(DOCUMENTS[0].split(".")[0] + ".", "good"), LabelledText(DOCUMENTS[1], "bad")]
    return [builder.build(text, demos, WORDS, probes) for text in DOCUMENTS[3 : 3 + count]]


def scores(lm, inference="channel"):
    """The numbers of two prompts."""
    return [row.tolist() for branches in lm.score(prompts(lm, inference, 2)) for row in branches]


@pytest.fixture(scope="package")
def right():
    """The numbers as the same server gives them when nothing goes wrong: compared to the last digit."""
    server = VLLM()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZICL_HOME", folder)
        remote = open_remote(server.spec, RemoteSettings(tokenizer="tiny"), load_tokenizer=tokenizer)
        found = scores(remote)
        remote.close()
    server.close()
    return found
