"""Rows computed on a cluster are those of one machine, whatever becomes of the nodes and of the program itself."""

from __future__ import annotations

import time

import pytest

from tests.cluster.conftest import files, once, started, zicl
from tests.lm.remote.server import VLLM

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def given(raw, task, tmp_path_factory):
    """What an evaluation of two methods is told, with a small corpus."""
    folder = tmp_path_factory.mktemp("given")
    options = ("--max-paragraphs", 150, "--offline")
    zicl("corpus", "build", raw, "-o", folder / "raw.zicl", *options, log=folder / "log")
    experiment = folder / "experiment.toml"
    experiment.write_text(
        'methods = ["z-icl", "no-demos"]\ninferences = ["channel"]\nseeds = [100]\nbatch = 4\n'
        f'tasks = ["Days"]\ntask_file = "{task}"\ncorpus = "{folder / "raw.zicl"}"\n'
    )
    return (experiment, "--threads", 1, "--offline")


@pytest.fixture(scope="session")
def alone(given, tmp_path_factory):
    """The results of one process with one thread."""
    folder = tmp_path_factory.mktemp("alone")
    zicl("evaluate", *given, "-o", folder / "results", log=folder / "log")
    return folder / "results"


def batches(results):
    return len(list((results / "rows").glob("*.parquet")))


def test_rows_are_the_same(given, alone, cluster, tmp_path):
    options = ("--on", cluster.address, "--workers", 2)
    zicl("evaluate", *given, "-o", tmp_path / "results", *options, log=tmp_path / "log")
    assert files(tmp_path / "results") == files(alone)


def test_rows_are_the_same_with_searchers(given, alone, cluster, tmp_path):
    options = ("--on", cluster.address, "--workers", 1, "--searchers", 3)
    zicl("evaluate", *given, "-o", tmp_path / "results", *options, log=tmp_path / "log")
    assert files(tmp_path / "results") == files(alone)


def test_rows_are_the_same_when_a_node_is_killed(given, alone, cluster, tmp_path):
    def half_way():
        return batches(tmp_path / "results") >= batches(alone) // 2

    def kill():
        cluster.remove_node(cluster.second, allow_graceful=False)

    options = ("--on", cluster.address, "--workers", 4)
    with once(half_way, kill) as killed:
        zicl("evaluate", *given, "-o", tmp_path / "results", *options, log=tmp_path / "log")
    assert killed, "the evaluation ended before a node was killed"
    assert files(tmp_path / "results") == files(alone)


def test_rows_are_the_same_when_searchers_are_killed(given, alone, cluster, tmp_path):
    def begun():
        return batches(tmp_path / "results") >= 4

    def kill():
        cluster.remove_node(cluster.second, allow_graceful=False)

    options = ("--on", cluster.address, "--workers", 1, "--searchers", 4)
    with once(begun, kill) as killed:
        zicl("evaluate", *given, "-o", tmp_path / "results", *options, log=tmp_path / "log")
    assert killed, "the evaluation ended before a node was killed"
    assert files(tmp_path / "results") == files(alone)


def test_rows_are_the_same_when_the_program_is_killed(given, alone, cluster, tmp_path):
    command = ("evaluate", *given, "-o", tmp_path / "results", "--on", cluster.address, "--workers", 2)
    with started(*command, log=tmp_path / "log") as process:
        while batches(tmp_path / "results") < 4 and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        assert process.wait(60) == -9, (tmp_path / "log").read_text()[-3000:]
    assert 4 <= batches(tmp_path / "results") < batches(alone)
    zicl(*command, log=tmp_path / "log")
    assert files(tmp_path / "results") == files(alone)


def test_workers_can_ask_one_inference_server(given, cluster, tmp_path):
    server = VLLM()
    try:
        command = ("evaluate", *given, "--lm", server.spec, "--k", 2)
        zicl(*command, "-o", tmp_path / "spread", "--on", cluster.address, "--workers", 2, log=tmp_path / "log")
        asked = server.count("/v1/completions")
        assert asked > 40
        # Answers are remembered by what was asked: the same questions are not asked again.
        zicl(*command, "-o", tmp_path / "alone", log=tmp_path / "log")
        assert server.count("/v1/completions") - asked < 10
    finally:
        server.close()
    assert files(tmp_path / "spread") == files(tmp_path / "alone")


def test_an_error_of_a_worker_is_told_as_on_one_machine(given, cluster, tmp_path):
    log = tmp_path / "log"
    spread = ("--on", cluster.address, "--workers", 2, "-o", tmp_path / "results")
    with started("evaluate", *given, *spread, "--requests", 4, log=log) as process:
        assert process.wait(300) == 2
    told = log.read_text()
    assert "--requests is for a model behind a server" in told
    assert "Traceback" not in told
