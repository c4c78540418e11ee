"""Names of models, and a hub that is asked once."""

import httpx
import pytest

from zicl._util.hub import can_reach_hub, check_model_name
from zicl.exceptions import ModelError, OfflineError, UnknownNameError
from zicl.lm.load import load_lm
from zicl.retrieve.encoder import load_encoder


@pytest.mark.parametrize("name", ["gte-small", "BAAI/bge-small-en", "owner/name_2.0", "owner/name@main"])
def test_names_that_may_be_an_encoder(name):
    check_model_name(name, "encoder")


@pytest.mark.parametrize(
    "name", ["nope", "./nope", "/nope/nope", "no/such/folder", "~/nope", "owner/", "http://host/v1"]
)
def test_names_that_no_encoder_has(name):
    with pytest.raises(UnknownNameError, match="unknown encoder") as error:
        check_model_name(name, "encoder")
    assert "OWNER/NAME" in error.value.hint


def test_a_folder_and_a_name_of_another_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    check_model_name("mine", "lm")
    with pytest.raises(ModelError, match="wordnet is no language model"):
        check_model_name("wordnet", "lm")


def test_a_close_name_of_the_catalog_is_suggested():
    with pytest.raises(UnknownNameError) as error:
        check_model_name("all-MiniLM-L6-v2", "encoder")
    assert error.value.hint.startswith("did you mean 'all-minilm-l6-v2'?")


@pytest.mark.parametrize(("status", "reached"), [(None, False), (200, True), (404, True), (503, True)])
def test_the_hub_is_asked_once(monkeypatch, status, reached):
    from huggingface_hub.errors import HfHubHTTPError

    asked = []

    def answer(url, **_):
        asked.append(url)
        if status is None:
            raise httpx.ConnectError("no name of this host")
        if status != 200:
            raise HfHubHTTPError("no", response=httpx.Response(status, request=httpx.Request("HEAD", url)))

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", answer)
    assert can_reach_hub("owner/name", "v1") is reached
    assert len(asked) == 1
    assert "owner/name/resolve/v1/config.json" in asked[0]


@pytest.mark.parametrize("load", [load_lm, load_encoder])
def test_without_a_network_only_this_machine_is_looked_at(monkeypatch, load):
    module, loader = load.__module__, "transformers.AutoTokenizer.from_pretrained"
    if load is load_encoder:
        loader = "sentence_transformers.SentenceTransformer"
    given = {}

    def find(*_, **options):
        given.update(options)
        raise OSError("nothing here")

    monkeypatch.setattr(f"{module}.can_reach_hub", lambda *_: False)
    monkeypatch.setattr(loader, find)
    with pytest.raises(OfflineError, match=r"owner/name.* is not on this machine: nothing here"):
        load("owner/name")
    assert given["local_files_only"]


def test_an_encoder_that_a_corpus_recorded_without_its_owner_is_looked_for(monkeypatch):
    def find(name, **_):
        raise OSError(f"looked for {name}")

    monkeypatch.setattr("zicl.retrieve.encoder.can_reach_hub", lambda *_: False)
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", find)
    with pytest.raises(OfflineError, match="looked for all-MiniLM-L12-v2"):
        load_encoder("all-MiniLM-L12-v2")


def test_a_name_that_the_hub_cannot_have_is_not_taken_for_a_missing_network():
    assert can_reach_hub("a--b/c")
