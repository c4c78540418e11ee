"""The time beside the rows: what was computed counts, what was there does not, and parts add up."""

import json

import pytest

from tests.lab.evaluate.conftest import make_experiment
from zicl.exceptions import StorageError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.plan import RunShard
from zicl.lab.evaluate.run import evaluate
from zicl.lab.evaluate.store import merge
from zicl.lab.evaluate.timing import ComputeTime, add_time, total_time


def test_times_add_up_over_runs_and_parts(tasks, lm, index, tmp_path):
    context = ExperimentContext(make_experiment(tasks, methods=["majority", "no-demos"], seeds=[1]), lm=lm, index=index)
    parts = [tmp_path / "one", tmp_path / "two"]
    counts = [evaluate(context, part, shard=RunShard(n, 2)).computed for n, part in enumerate(parts, start=1)]
    assert [total_time([part]).rows for part in parts] == counts
    assert all(total_time([part]).seconds > 0 for part in parts)
    before = total_time(parts)
    evaluate(context, parts[0], shard=RunShard(1, 2))
    assert total_time(parts) == before
    merge(parts, tmp_path / "both")
    assert total_time([tmp_path / "both"]).rows == sum(counts)


def test_a_folder_without_a_time_has_none(tmp_path):
    assert total_time([tmp_path]) == ComputeTime()
    add_time(tmp_path, 1.5, 3)
    add_time(tmp_path, 0.5, 1)
    assert total_time([tmp_path, tmp_path / "nowhere"]) == ComputeTime(2.0, 4)


@pytest.mark.parametrize("told", [{"seconds": 1.0, "rows": 2, "hours": 3}, {"seconds": "long", "rows": 2}, [1, 2]])
def test_a_file_that_says_something_else_is_named(tmp_path, told):
    (tmp_path / "time.json").write_text(json.dumps(told))
    with pytest.raises(StorageError, match=r"time\.json does not say how long .*; expected seconds and rows"):
        total_time([tmp_path])
