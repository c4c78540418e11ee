"""A pool of workers computes the same rows as one process."""

from functools import partial

import pytest
import torch

from tests.apps.cluster.local_workers import LocalWorkers
from tests.lab.evaluate.conftest import examples, make_experiment, write_task
from zicl.apps.cluster.evaluate import ClusterCompute, EvaluationWorker
from zicl.apps.cluster.pool import WorkerPool
from zicl.apps.cluster.worker import WorkerSetup
from zicl.exceptions import ClusterError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.run import evaluate


@pytest.fixture
def small(tmp_path):
    tasks = write_task(tmp_path)
    return make_experiment(tasks, methods=["majority", "no-demos", "z-icl", "icl-gold"], inferences=["channel"])


def pool_of(make, size, lost=()):
    workers = LocalWorkers(EvaluationWorker, (make, WorkerSetup(torch.get_num_threads())), lost)
    return WorkerPool(workers, size)


@pytest.mark.parametrize("lost", [(), (5, 9)])
def test_rows_and_manifest_are_the_same(small, lm, index, tmp_path, lost):
    context = ExperimentContext(small, lm=lm, index=index)
    evaluate(context, tmp_path / "local")
    with pool_of(partial(ExperimentContext, small, lm=lm, index=index), 3, lost) as pool:
        summary = evaluate(context, tmp_path / "cluster", compute=ClusterCompute(pool, context.hashes))
    assert summary.complete
    for name in ("rows.parquet", "manifest.json"):
        assert (tmp_path / "cluster" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()


def test_a_worker_with_other_training_examples_is_an_error(small, lm, index, tmp_path):
    context, count = ExperimentContext(small, lm=lm, index=index), iter(range(9))

    def make():
        if next(count) == 1:
            lines = "".join(f"{row}\n".replace("'", '"') for row in examples(20, start=300))
            (tmp_path / "train.jsonl").write_text(lines)
        return ExperimentContext(small, lm=lm, index=index)

    with pool_of(make, 2) as pool, pytest.raises(ClusterError, match="train_hash"):
        evaluate(context, tmp_path / "cluster", compute=ClusterCompute(pool, context.hashes))


def test_other_examples_on_the_workers_are_an_error(small, lm, index, tmp_path):
    context = ExperimentContext(small, lm=lm, index=index)
    (tmp_path / "test.jsonl").write_text("".join(f"{row}\n".replace("'", '"') for row in examples(9, start=50)))
    with (
        pool_of(partial(ExperimentContext, small, lm=lm, index=index), 2) as pool,
        pytest.raises(ClusterError, match="other examples of Days"),
    ):
        evaluate(context, tmp_path / "cluster", compute=ClusterCompute(pool, context.hashes))
