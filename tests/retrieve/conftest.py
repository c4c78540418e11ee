"""A corpus to change."""

import pytest

from tests.conftest import make_index
from tests.retrieve.changed import DOMAINS, write
from zicl.corpus import shards


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Files of all domains, and a corpus of the first two, in several shards."""
    monkeypatch.setattr(shards, "_SHARD_SENTENCES", 4)
    paths = write(tmp_path, DOMAINS)
    old = make_index(tmp_path / "c.zicl", domains={name: paths[name] for name in ("film", "food")})
    return paths, old.corpus.path
