import pytest

from zicl.apps.cluster.connect import Cluster, connect, worker_count
from zicl.exceptions import ClusterError, ConfigError


def test_one_worker_a_machine_or_as_many_as_fit_its_threads():
    assert worker_count([{"CPU": 8}, {"CPU": 8}]) == Cluster(2, 8)
    assert worker_count([{"CPU": 8}, {"CPU": 3}], threads=2) == Cluster(5, 2)
    assert worker_count([{"CPU": 8}], workers=3, threads=1) == Cluster(3, 1)
    assert worker_count([{"CPU": 8}, {"memory": 5}], threads=2) == Cluster(4, 2)
    assert worker_count([{"CPU": 16, "GPU": 2}, {"CPU": 4}]) == Cluster(2, 8, 1)
    assert worker_count([{"CPU": 2, "GPU": 4}, {"CPU": 64}]) == Cluster(2, 1, 1)


def test_what_fits_no_machine_is_an_error():
    with pytest.raises(ConfigError, match="room for 0"):
        worker_count([{"CPU": 4}, {"CPU": 2}], threads=5)
    with pytest.raises(ConfigError, match="room for 2"):
        worker_count([{"CPU": 4}], workers=4, threads=2)
    with pytest.raises(ConfigError, match="8 threads and a GPU each"):
        worker_count([{"CPU": 4, "GPU": 1}, {"CPU": 64}], threads=8)
    with pytest.raises(ClusterError, match="no CPU"):
        worker_count([{"memory": 5}])


def test_a_number_of_workers_is_at_least_one():
    with pytest.raises(ConfigError, match="--workers 0"), connect("ray", workers=0):
        pass


def test_a_cluster_that_is_not_there_is_said_at_once():
    pytest.importorskip("ray")
    with pytest.raises(ClusterError, match="not reached"), connect("127.0.0.1:1"):
        pass


def test_without_ray_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ClusterError, match="not installed") as error, connect("ray"):
        pass
    assert "zicl[ray]" in str(error.value)
