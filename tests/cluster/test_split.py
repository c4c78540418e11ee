"""Text split on a cluster keeps its order."""

from __future__ import annotations

import pytest

from tests.cluster.conftest import sentences
from zicl.apps.cluster.worker import local_versions
from zicl.corpus.splitter import get_splitter, split_locally
from zicl.exceptions import ClusterError

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]


def test_many_tasks_of_unequal_size(cluster):
    from zicl.apps.cluster.connect import connect
    from zicl.apps.cluster.ray_data import split_on

    some = list(sentences(6000))
    # One block in fifty is long: tasks end in another order than they begin.
    texts, taken = [], 0
    for number in range(500):
        size = 60 if number % 50 == 0 else 2 + number % 5
        texts.append(" ".join(some[taken : taken + size]))
        taken = (taken + size) % 5000
    with connect(cluster.address, workers=2, threads=1) as connected:
        split = split_on(connected, "sentencex", characters=1500)
        assert list(split(texts)) == list(split_locally(get_splitter("sentencex"))(texts))


def test_an_error_of_a_task_is_unwrapped(cluster, monkeypatch):
    from zicl.apps.cluster import ray_data as module
    from zicl.apps.cluster.connect import connect
    from zicl.apps.cluster.worker import WorkerSetup

    def other_versions(threads, offline):
        return WorkerSetup(threads, offline, {**local_versions(), "torch": "1.0"})

    monkeypatch.setattr(module, "WorkerSetup", other_versions)
    with connect(cluster.address, workers=2, threads=1) as connected:
        split = module.split_on(connected, "sentencex", characters=10)
        with pytest.raises(ClusterError, match=r"torch 1\.0") as error:
            list(split(["The lamp was off.", "Nobody came.", "It rained."]))
    assert "Traceback" not in str(error.value)


def test_a_cluster_of_this_machine_alone_listens_on_loopback_only(monkeypatch):
    import ray

    from zicl.apps.cluster.connect import connect

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with connect("ray", workers=1, threads=1):
        assert {node["NodeManagerAddress"] for node in ray.nodes()} == {"127.0.0.1"}
