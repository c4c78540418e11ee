"""A corpus built on a cluster equals one built on one machine, also when nodes die."""

from __future__ import annotations

import time

import pytest

from tests.cluster.conftest import SENTENCES, files, once, started, zicl
from zicl.corpus.store import Corpus

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def local(raw, tmp_path_factory):
    """Build the corpus on one machine with one thread."""
    folder = tmp_path_factory.mktemp("local")
    zicl("corpus", "build", raw, "-o", folder / "raw.zicl", "--offline", log=folder / "log")
    assert Corpus.open(folder / "raw.zicl").manifest["sentences"] == SENTENCES
    return folder / "raw.zicl"


def shards(corpus):
    return len(list((corpus / "index.partial").glob("vectors-*.npy")))


def command(raw, cluster, output, workers=2):
    on = f"{cluster.address},workers={workers},threads=1"
    return ("corpus", "build", raw, "-o", output, "--on", on, "--offline")


def build(raw, cluster, output, log, workers=2):
    zicl(*command(raw, cluster, output, workers), log=log)


def test_a_corpus_is_the_same(raw, local, cluster, tmp_path):
    build(raw, cluster, tmp_path / "raw.zicl", tmp_path / "log")
    assert files(tmp_path / "raw.zicl") == files(local)


def test_a_corpus_is_the_same_when_a_node_is_killed(raw, local, cluster, tmp_path):
    def half_way():
        return shards(tmp_path / "raw.zicl") >= SENTENCES // 2048 // 2

    def kill():
        cluster.remove_node(cluster.second, allow_graceful=False)

    with once(half_way, kill) as killed:
        # As many as there are cores, so that some are on the node that is killed.
        build(raw, cluster, tmp_path / "raw.zicl", tmp_path / "log", workers=4)
    assert killed, "the build ended before a node was killed"
    assert files(tmp_path / "raw.zicl") == files(local)


def test_a_corpus_is_the_same_when_the_program_is_killed(raw, local, cluster, tmp_path):
    corpus, log = tmp_path / "raw.zicl", tmp_path / "log"
    with started(*command(raw, cluster, corpus), log=log) as process:
        while shards(corpus) < 3 and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        assert process.wait(60) == -9, log.read_text()[-3000:]
    left = shards(corpus)
    assert 3 <= left < SENTENCES // 2048
    build(raw, cluster, corpus, log)
    assert files(corpus) == files(local)
