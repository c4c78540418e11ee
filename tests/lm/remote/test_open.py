"""What may be sent where: no text leaves the machine without permission, and no key where others could read it."""

import pytest
from typer.testing import CliRunner

from tests.lm.remote import server as fake
from zicl.cli.app import app
from zicl.exceptions import ConfigError, ModelError, OfflineError, ServerError, UsageError
from zicl.lm.remote.open import open_remote
from zicl.lm.remote.settings import ApiKey, RemoteSettings, ServerAddress, find_api_key

AWAY = "http://192.0.2.1:9/v1#tiny"  # an address that belongs to nobody


@pytest.fixture
def no_requests(monkeypatch):
    def never(*_args, **_options):
        raise AssertionError("a request was sent")

    monkeypatch.setattr("zicl.lm.remote.client.Client._exchange", never)


def test_text_leaves_the_machine_only_after_a_yes(monkeypatch, no_requests):
    monkeypatch.delenv("ZICL_OFFLINE")
    with pytest.raises(ConfigError, match=r"would be sent to 192\.0\.2\.1") as asked:
        open_remote(AWAY, load_tokenizer=lambda name: None)
    assert "--allow-remote-text" in asked.value.hint
    with pytest.raises(AssertionError, match="a request was sent"):
        open_remote(AWAY, RemoteSettings(allow_text=True), load_tokenizer=lambda name: None)


def test_offline_rules_servers_out_but_not_this_machine(running, opened, no_requests):
    with pytest.raises(OfflineError, match="on the network"):
        open_remote(AWAY, RemoteSettings(allow_text=True), offline=True, load_tokenizer=lambda name: None)


def test_loopback_needs_no_yes_even_offline(running, opened):
    assert opened(running(fake.VLLM)).way


@pytest.mark.parametrize(
    ("base", "variables", "sent"),
    [
        ("https://host/v1", {"OPENAI_API_KEY": "other"}, "other"),
        ("http://127.0.0.1/v1", {"OPENAI_API_KEY": "other"}, "other"),
        ("http://host/v1", {"OPENAI_API_KEY": "other"}, None),
        ("http://host/v1", {"OPENAI_API_KEY": "other", "ZICL_API_KEY": "own"}, "own"),
        ("https://host/v1", {}, None),
    ],
)
def test_which_key_goes_where(base, variables, sent):
    headers = find_api_key(ServerAddress(base), variables).headers()
    assert headers == ({"Authorization": f"Bearer {sent}"} if sent else {})


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "“sk-one”", "Bearer sk-one"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_repeated(key):
    with pytest.raises(ConfigError, match="the key in ZICL_API_KEY") as refused:
        find_api_key(ServerAddress("https://host/v1"), {"ZICL_API_KEY": key})
    assert "sk-" not in f"{refused.value} {refused.value.hint}"


def test_models_in_files_of_one_name_are_told_apart(running, opened):
    server, identities = running(fake.VLLM), []
    for name in ("/small/model.gguf", "/large/model.gguf"):
        server.name = name
        identities.append(opened(server).identity)
    assert len(set(identities)) == 2


def test_a_server_with_another_name_for_the_text_has_no_tokenizer_for_us(running, opened):
    class Other(fake.LlamaCpp):
        """llama.cpp's own server takes ``content`` and answers anything else with nothing."""

        def more(self):
            return {"/tokenize": lambda body: {"tokens": []}, "/detokenize": lambda body: {"content": ""}}

    assert opened(running(Other)).way.startswith("echo of text")
    with pytest.raises(ModelError, match="no tokenizer was named"):
        opened(running(Other), None)


def test_a_key_is_hidden():
    secret = ApiKey("sk-1")
    assert "sk-1" not in repr(secret) + secret.hide("wrong key sk-1 given")


def test_a_redirect_is_not_followed(running, opened):
    server = running(fake.VLLM)
    server.faults.append(fake.refuse(307, Location="http://192.0.2.1/v1/models"))
    with pytest.raises(ServerError, match="redirects to another address"):
        opened(server)


def classify(*options):
    return CliRunner().invoke(app, ["classify", "A fine film.", "--labels", "terrible,great", *options])


def test_the_command_line_asks_a_server_and_says_what_it_spent(running, home):
    server = running(fake.VLLM)
    options = ["--lm", server.spec, "--method", "no-demos", "--server", "price_in=2"]
    found = classify(*options)
    assert found.exit_code == 0, found.output
    assert "great" in found.stdout or "terrible" in found.stdout
    assert "requests" in found.stderr
    assert "cost 0.0" in found.stderr
    again = classify(*options)
    assert "2 answers from the cache" in again.stderr


def test_options_of_servers_are_for_servers():
    found = classify("--method", "no-demos", "--server", "max_cost=3")
    assert isinstance(found.exception, UsageError)
    assert "--server is for a model behind a server" in str(found.exception)


@pytest.mark.parametrize("key", ["max_cost", "requests", "context"])
def test_zero_does_not_mean_no_limit(key, running, home):
    server = running(fake.VLLM)
    found = classify("--lm", server.spec, "--method", "no-demos", "--server", f"price_in=2,{key}=0")
    assert isinstance(found.exception, ConfigError)
    assert key in str(found.exception)
    assert server.asked == []


def test_a_saved_classifier_finds_its_server_again(running, tmp_path, home):
    server = running(fake.VLLM)
    saved = tmp_path / "film.zicl-clf"
    made = classify("--lm", server.spec, "--method", "no-demos", "--save", str(saved))
    assert made.exit_code == 0, made.output
    runner = CliRunner()
    found = runner.invoke(app, ["classify", "A fine film.", "--with", str(saved), "--server", "requests=2"])
    assert found.exit_code == 0, found.output
    assert "from the cache" in found.stderr
    server.following = False
    other = runner.invoke(app, ["classify", "A fine film.", "--with", str(saved), "--server", "requests=2"])
    assert "is not the one" in str(other.exception)
