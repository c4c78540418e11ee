import pickle

import pytest

from zicl.apps.cluster.connect import check_versions, cluster_error, decisive, short_message
from zicl.exceptions import ClusterError, ServerError, TextError


class WrappedError(Exception):
    def __init__(self, cause):
        super().__init__("a traceback of many lines")
        self.cause = cause


class DualError(WrappedError, TextError):
    """As Ray makes it: of the class of what it wraps, with a traceback as its message."""


def test_our_own_error_is_found_in_what_ray_wraps_it_in():
    inner = TextError("row 3 is empty", hint="remove it")
    assert cluster_error(WrappedError(WrappedError(inner))) is inner
    assert cluster_error(DualError(inner)) is inner
    told = cluster_error(WrappedError(ValueError("shapes differ")))
    assert isinstance(told, ClusterError)
    assert "a traceback of many lines" in str(told)


def test_a_long_message_keeps_its_end():
    assert short_message(ValueError("x " * 500 + "the reason")).endswith("the reason")


@pytest.mark.parametrize(
    "error", [TextError("wrong", hint="do this"), ServerError("busy", hint="wait", status=503, reached=False)]
)
def test_errors_survive_the_way_from_a_worker(error):
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_other_versions_are_named():
    check_versions(decisive())
    with pytest.raises(ClusterError, match=r"torch 1\.0"):
        check_versions({**decisive(), "torch": "1.0"})
