"""zicl serve where it does not get as far as serving."""

import json
import socket
import sys
from pathlib import Path

import pytest

from zicl.apps.serve.security import Access
from zicl.apps.serve.server import address, listen
from zicl.corpus.manifest import FORMAT, SENTENCES, TEXTS
from zicl.exceptions import ServerError, SynonymError
from zicl.persistence import FORMAT as CLASSIFIER_FORMAT
from zicl.retrieve.builder import FOLDER, MANIFEST

PILE = Path(__file__).parents[3] / "docs" / "page_corpus" / "road.txt"


@pytest.fixture
def corpus(tmp_path):
    """A corpus that looks complete, and cannot be opened."""
    folder = tmp_path / "raw.zicl"
    (folder / FOLDER).mkdir(parents=True)
    counts = {"sentences": 1, "indexed": 1, "paragraphs": 1, "single": 1}
    missing = {"bytes": 1, "sha256": "0" * 64}
    manifest = {
        "format": FORMAT,
        "documents": 1,
        "options": {},
        **counts,
        "domains": [{"name": "film", "paragraphs_read": 1, **counts}],
        "sources": [{"name": "film.txt", "domain": "film", "first_document": 0, "first_shard": 0}],
        "files": {SENTENCES: missing, TEXTS: missing},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / FOLDER / MANIFEST).write_text(json.dumps({"format": FORMAT}))
    return folder


@pytest.fixture
def saved(tmp_path):
    (tmp_path / "film.zicl-clf").mkdir()
    (tmp_path / "film.zicl-clf" / "classifier.json").write_text(
        json.dumps({"format": CLASSIFIER_FORMAT, "kind": "distilled"})
    )
    return tmp_path / "film.zicl-clf"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--method", "z-icl"], "no labels were given, and --method z-icl needs them"),
        (["--experts", "encoder,channel"], "no labels were given, and --experts encoder,channel needs them"),
        (["--set", "scoring.experts=encoder,channel"], "and --set scoring.experts=encoder,channel needs them"),
        (["--fit", PILE], "no labels were given, and --fit needs them"),
        (["--labels", "a,b", "--host", "0.0.0.0"], "no token was given"),
        (["--labels", "a,b", "--max-texts", "0"], "the limit texts is 0"),
        (["--labels", "a,b", "--queue", "10"], "only 10 may wait"),
        (["--labels", "a,b", "--method", "nave"], "did you mean 'naive'"),
    ],
)
def test_wrong_options_are_found_before_anything_is_loaded(run, corpus, options, says):
    code, out, err = run("serve", corpus, *options)
    assert (code, out) == (2, "")
    assert says in err


def test_a_folder_that_is_neither(run, tmp_path, corpus, saved):
    code, _, err = run("serve", tmp_path, "--labels", "a,b")
    assert code == 2
    assert "neither a saved classifier nor a corpus" in err
    code, _, err = run("serve", saved, "--with", saved)
    assert code == 2
    assert "both given" in err
    code, _, err = run("serve", corpus, "--corpus", corpus, "--labels", "a,b")
    assert code == 2
    assert "both given" in err


def test_an_error_in_loading_ends_the_server(run, corpus, monkeypatch):
    def fails(*_):
        raise ServerError("the model's server does not answer")

    monkeypatch.setattr("zicl.cli.serve._classifier", fails)
    code, _, err = run("serve", corpus, "--labels", "terrible,great", "--port", "0", "--no-open")
    assert code == 1
    assert "serving http://127.0.0.1:" in err
    assert "does not answer" in err


def test_a_saved_classifier_of_another_format(run, saved):
    (saved / "classifier.json").write_text(json.dumps({"format": 0, "zicl": "0"}))
    code, _, err = run("serve", saved, "--port", "0", "--no-open")
    assert code == 2
    assert "has format 0" in err


@pytest.mark.parametrize(
    ("options", "listens"),
    [
        (["--labels", "sport,cooking"], False),
        (["--labels", "sport,cooking", "--synonyms", "sport=athletics"], False),
        (["--labels", "sport,cooking", "--synonyms", "sport=athletics", "--synonyms", "cooking=cuisine"], True),
        (["--labels", "sport,cooking", "--method", "naive"], True),
        (["--labels", "sport,cooking", "--k", "0"], True),
        (["--labels", "terrible,great"], True),
    ],
)
def test_labels_that_may_have_no_synonym_are_tried_before_it_listens(run, corpus, monkeypatch, options, listens):
    def none_found(*_):
        raise SynonymError("no synonym good enough was found for: cooking")

    monkeypatch.setattr("zicl.cli.serve._classifier", none_found)
    method = [] if "--method" in options else ["--method", "z-icl"]
    code, _, err = run("serve", corpus, *options, *method, "--port", "0", "--no-open")
    assert code == 2
    assert "no synonym good enough" in err
    assert ("serving http://127.0.0.1:" in err) == listens


def test_labels_that_cannot_be_are_found_before_the_server_listens(run, corpus):
    code, _, err = run("serve", corpus, "--labels", "dull,Dull", "--port", "0", "--no-open")
    assert code == 2
    assert "the same words" in err
    assert "serving" not in err


def test_a_missing_extra_names_the_command(run, corpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = run("serve", corpus, "--labels", "a,b")
    assert code == 2
    assert 'pip install "zicl[serve]"' in err


def test_a_port_that_is_taken(run, corpus):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = run("serve", corpus, "--labels", "a,b", "--port", taken.getsockname()[1])
    assert code == 2
    assert "cannot be listened on" in err


def test_any_free_port_and_the_address_a_browser_takes():
    found, access = listen(Access(port=0))
    with found:
        assert access.port > 0
        assert address(access) == f"http://127.0.0.1:{access.port}/"
    assert address(Access("0.0.0.0", 80, "t")) == "http://127.0.0.1:80/"
    assert address(Access("::1", 80)) == "http://[::1]:80/"
