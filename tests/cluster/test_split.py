"""Text split on a cluster stays in its order."""

from __future__ import annotations

import pytest

from tests.cluster.conftest import sentences
from zicl.apps.cluster.same import decisive
from zicl.corpus.paragraphs import in_turn
from zicl.corpus.splitter import get_splitter
from zicl.exceptions import ClusterError

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]


def test_many_tasks_of_unequal_size(cluster):
    from zicl.apps.cluster.connect import connected
    from zicl.apps.cluster.split import split_on

    some = list(sentences(6000))
    # One block in fifty is long: tasks end in another order than they begin.
    texts, taken = [], 0
    for number in range(500):
        size = 60 if number % 50 == 0 else 2 + number % 5
        texts.append(" ".join(some[taken : taken + size]))
        taken = (taken + size) % 5000
    with connected(cluster.address, workers=2, threads=1) as found:
        split = split_on(found, "sentencex", characters=1500)
        assert list(split(texts)) == list(in_turn(get_splitter("sentencex"))(texts))


def test_an_error_of_a_task_is_told_as_our_own(cluster, monkeypatch):
    from zicl.apps.cluster import split as module
    from zicl.apps.cluster.connect import connected
    from zicl.apps.cluster.worker import Conditions

    def elsewhere(threads, offline):
        return Conditions(threads, offline, {**decisive(), "torch": "1.0"})

    monkeypatch.setattr(module, "Conditions", elsewhere)
    with connected(cluster.address, workers=2, threads=1) as found:
        split = module.split_on(found, "sentencex", characters=10)
        with pytest.raises(ClusterError, match=r"torch 1\.0") as told:
            list(split(["The lamp was off.", "Nobody came.", "It rained."]))
    assert "Traceback" not in str(told.value)


def test_a_cluster_of_this_machine_alone_listens_on_loopback_only(monkeypatch):
    import ray

    from zicl.apps.cluster.connect import connected

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with connected("ray", workers=1, threads=1):
        assert {node["NodeManagerAddress"] for node in ray.nodes()} == {"127.0.0.1"}
