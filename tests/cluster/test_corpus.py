"""A corpus built on a cluster is the one built on one machine, whatever becomes of the nodes."""

from __future__ import annotations

import pytest

from tests.cluster.conftest import SENTENCES, files, once, zicl
from zicl.corpus.store import Corpus

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def alone(raw, tmp_path_factory):
    """The corpus as one machine with one thread builds it."""
    folder = tmp_path_factory.mktemp("alone")
    zicl("corpus", "build", raw, "-o", folder / "raw.zicl", "--offline", log=folder / "log")
    assert Corpus.open(folder / "raw.zicl").manifest["sentences"] == SENTENCES
    return folder / "raw.zicl"


def build(raw, cluster, output, log, workers=2):
    options = ("--on", cluster.address, "--workers", workers, "--threads", 1, "--offline")
    zicl("corpus", "build", raw, "-o", output, *options, log=log)


def test_a_corpus_is_the_same(raw, alone, cluster, tmp_path):
    build(raw, cluster, tmp_path / "raw.zicl", tmp_path / "log")
    assert files(tmp_path / "raw.zicl") == files(alone)


def test_a_corpus_is_the_same_when_a_node_is_killed(raw, alone, cluster, tmp_path):
    partial = tmp_path / "raw.zicl" / "index.partial"

    def half_way():
        return len(list(partial.glob("vectors-*.npy"))) >= SENTENCES // 2048 // 2

    def kill():
        cluster.remove_node(cluster.second, allow_graceful=False)

    with once(half_way, kill) as killed:
        # As many as there are cores, so that some are on the node that is killed.
        build(raw, cluster, tmp_path / "raw.zicl", tmp_path / "log", workers=4)
    assert killed, "the build ended before a node was killed"
    assert files(tmp_path / "raw.zicl") == files(alone)
