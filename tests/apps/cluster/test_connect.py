"""Connecting to a cluster, the workers that fit it, and errors that come back from it."""

import pickle

import pytest

from zicl.apps.cluster.connect import Cluster, cluster_error, connect, short_message, worker_count
from zicl.exceptions import ClusterError, ConfigError, ServerError, TextError


def test_one_worker_per_machine_or_as_many_as_fit_its_threads():
    assert worker_count([{"CPU": 8}, {"CPU": 8}]) == Cluster(2, 8)
    assert worker_count([{"CPU": 8}, {"CPU": 3}], threads=2) == Cluster(5, 2)
    assert worker_count([{"CPU": 8}], workers=3, threads=1) == Cluster(3, 1)
    assert worker_count([{"CPU": 8}, {"memory": 5}], threads=2) == Cluster(4, 2)
    assert worker_count([{"CPU": 16, "GPU": 2}, {"CPU": 4}]) == Cluster(2, 8, 1)
    assert worker_count([{"CPU": 2, "GPU": 4}, {"CPU": 64}]) == Cluster(2, 1, 1)


def test_workers_that_do_not_fit_are_an_error():
    with pytest.raises(ConfigError, match="room for 0"):
        worker_count([{"CPU": 4}, {"CPU": 2}], threads=5)
    with pytest.raises(ConfigError, match="room for 2"):
        worker_count([{"CPU": 4}], workers=4, threads=2)
    with pytest.raises(ConfigError, match="8 threads and a GPU each"):
        worker_count([{"CPU": 4, "GPU": 1}, {"CPU": 64}], threads=8)
    with pytest.raises(ClusterError, match="no CPU"):
        worker_count([{"memory": 5}])


def test_a_number_of_workers_is_at_least_one():
    with pytest.raises(ConfigError, match="workers is 0"), connect("ray", workers=0):
        pass


def test_a_missing_cluster_is_reported_at_once():
    pytest.importorskip("ray")
    with pytest.raises(ClusterError, match="not reached"), connect("127.0.0.1:1"):
        pass


def test_without_ray_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ClusterError, match="not installed") as error, connect("ray"):
        pass
    assert "zicl[ray]" in str(error.value)


class WrappedError(Exception):
    def __init__(self, cause):
        super().__init__("a traceback of many lines")
        self.cause = cause


class DualError(WrappedError, TextError):
    """Like Ray's wrapper: it has the class of the wrapped error, with a traceback as its message."""


def test_our_error_is_unwrapped():
    inner = TextError("row 3 is empty", hint="remove it")
    assert cluster_error(WrappedError(WrappedError(inner))) is inner
    assert cluster_error(DualError(inner)) is inner
    other = cluster_error(WrappedError(ValueError("shapes differ")))
    assert isinstance(other, ClusterError)
    assert "a traceback of many lines" in str(other)


def test_a_long_message_keeps_its_end():
    assert short_message(ValueError("x " * 500 + "the reason")).endswith("the reason")


@pytest.mark.parametrize(
    "error", [TextError("wrong", hint="do this"), ServerError("busy", hint="wait", status=503, reached=False)]
)
def test_errors_survive_pickling(error):
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))
