"""Corpora that tests build, change and compare."""

import json
from pathlib import Path

import pytest

from tests.conftest import DOCUMENTS, BagEncoder, make_index
from zicl.corpus import shards

DOMAINS = {"film": DOCUMENTS[:4], "food": [*DOCUMENTS[4:7], DOCUMENTS[1]], "train": [DOCUMENTS[0], *DOCUMENTS[7:]]}


class Counting(BagEncoder):
    """Records the sentences it embeds."""

    def __init__(self):
        self.texts = []

    def encode(self, texts):
        self.texts += texts
        return super().encode(texts)


def write(folder, domains):
    """Write one file per list of documents; a domain of plain documents is one file."""
    paths = {}
    for name, content in domains.items():
        files = [content] if isinstance(content[0], str) else content
        paths[name] = [folder / f"{name}{number}.jsonl" for number in range(len(files))]
        for path, texts in zip(paths[name], files, strict=True):
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return paths


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files but the build key, which depends on the times of files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "build.key"
    }


def killed_at(stop_after):
    """Return a progress report that kills the work at its call number ``stop_after``."""
    calls = 0

    def killed(*_):
        nonlocal calls
        calls += 1
        if calls == stop_after:
            raise KeyboardInterrupt

    return killed


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return the files of all domains, and the path of a corpus of the first two, built in several shards."""
    monkeypatch.setattr(shards, "_SHARD_SENTENCES", 4)
    paths = write(tmp_path, DOMAINS)
    old = make_index(tmp_path / "c.zicl", domains={name: paths[name] for name in ("film", "food")})
    return paths, old.corpus.path
