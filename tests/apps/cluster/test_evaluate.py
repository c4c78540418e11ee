"""Rows of a pool of workers are those of one process."""

from functools import partial

import pytest
import torch

from tests.apps.cluster.crew import HereCrew
from tests.lab.evaluate.conftest import examples, make_experiment, write_task
from zicl.apps.cluster.connect import WorkerSetup
from zicl.apps.cluster.evaluate import ClusterCompute, EvaluationWorker
from zicl.apps.cluster.pool import WorkerPool
from zicl.exceptions import ClusterError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.run import evaluate


@pytest.fixture
def small(tmp_path):
    tasks = write_task(tmp_path)
    return make_experiment(tasks, methods=["majority", "no-demos", "z-icl", "icl-gold"], inferences=["channel"])


def spread(make, size, lost=()):
    crew = HereCrew(EvaluationWorker, (make, WorkerSetup(torch.get_num_threads())), lost)
    return WorkerPool(crew, size)


def rows(folder):
    return {path.name: path.read_bytes() for path in (folder / "rows").iterdir()}


@pytest.mark.parametrize("lost", [(), (5, 9)])
def test_rows_and_manifest_are_the_same(small, lm, index, tmp_path, lost):
    world = ExperimentContext(small, lm=lm, index=index)
    evaluate(world, tmp_path / "alone")
    with spread(partial(ExperimentContext, small, lm=lm, index=index), 3, lost) as pool:
        summary = evaluate(world, tmp_path / "spread", compute=ClusterCompute(pool, world.hashes))
    assert summary.complete
    assert rows(tmp_path / "spread") == rows(tmp_path / "alone")
    assert (tmp_path / "spread/manifest.json").read_bytes() == (tmp_path / "alone/manifest.json").read_bytes()


def test_a_worker_with_other_training_examples_is_noticed(small, lm, index, tmp_path):
    world, count = ExperimentContext(small, lm=lm, index=index), iter(range(9))

    def make():
        if next(count) == 1:
            lines = "".join(f"{row}\n".replace("'", '"') for row in examples(20, start=300))
            (tmp_path / "train.jsonl").write_text(lines)
        return ExperimentContext(small, lm=lm, index=index)

    with spread(make, 2) as pool, pytest.raises(ClusterError, match="train_hash"):
        evaluate(world, tmp_path / "spread", compute=ClusterCompute(pool, world.hashes))


def test_other_examples_on_the_workers_are_noticed(small, lm, index, tmp_path):
    world = ExperimentContext(small, lm=lm, index=index)
    (tmp_path / "test.jsonl").write_text("".join(f"{row}\n".replace("'", '"') for row in examples(9, start=50)))
    with (
        spread(partial(ExperimentContext, small, lm=lm, index=index), 2) as pool,
        pytest.raises(ClusterError, match="other examples of Days"),
    ):
        evaluate(world, tmp_path / "spread", compute=ClusterCompute(pool, world.hashes))
