"""Rows computed on a cluster equal those of one machine, also when nodes or the program die."""

from __future__ import annotations

import time

import pytest

from tests.cluster.conftest import files, once, started, zicl
from tests.lm.remote.server import VLLM

pytestmark = pytest.mark.cluster

# Two methods, forty examples, four per batch.
BATCHES = 20


@pytest.fixture(scope="session")
def given(raw, task, tmp_path_factory):
    """Return the arguments of an evaluation of two methods, with a small corpus."""
    folder = tmp_path_factory.mktemp("given")
    options = ("--max-paragraphs", 150, "--offline")
    zicl("corpus", "build", raw, "-o", folder / "raw.zicl", *options, log=folder / "log")
    experiment = folder / "experiment.toml"
    experiment.write_text(
        'methods = ["z-icl", "no-demos"]\ninferences = ["channel"]\nseeds = [100]\nbatch = 4\n'
        f'tasks = ["Days"]\ntask_file = "{task}"\ncorpus = "{folder / "raw.zicl"}"\n'
    )
    return (experiment, "--offline")


@pytest.fixture(scope="session")
def local(given, tmp_path_factory):
    """Return the results of one process with one thread."""
    folder = tmp_path_factory.mktemp("local")
    zicl("evaluate", *given, "-o", folder / "results", "--threads", 1, log=folder / "log")
    return folder / "results"


def on(cluster, workers):
    return f"{cluster.address},workers={workers},threads=1"


def batches(results):
    """Return the number of batches that a running evaluation has stored."""
    return len(list((results / "rows").glob("*.parquet")))


def test_rows_are_the_same(given, local, cluster, tmp_path):
    zicl("evaluate", *given, "-o", tmp_path / "results", "--on", on(cluster, 2), log=tmp_path / "log")
    assert files(tmp_path / "results") == files(local)


def test_rows_are_the_same_with_searchers(given, local, cluster, tmp_path):
    options = ("--on", f"{on(cluster, 1)},searchers=3")
    zicl("evaluate", *given, "-o", tmp_path / "results", *options, log=tmp_path / "log")
    assert files(tmp_path / "results") == files(local)


def test_rows_are_the_same_when_a_node_is_killed(given, local, cluster, tmp_path):
    def half_way():
        return batches(tmp_path / "results") >= BATCHES // 2

    def kill():
        cluster.remove_node(cluster.second, allow_graceful=False)

    options = ("--on", on(cluster, 4))
    with once(half_way, kill) as killed:
        zicl("evaluate", *given, "-o", tmp_path / "results", *options, log=tmp_path / "log")
    assert killed, "the evaluation ended before a node was killed"
    assert files(tmp_path / "results") == files(local)


def test_rows_are_the_same_when_searchers_are_killed(given, local, cluster, tmp_path):
    def begun():
        return batches(tmp_path / "results") >= 4

    def kill():
        cluster.remove_node(cluster.second, allow_graceful=False)

    options = ("--on", f"{on(cluster, 1)},searchers=4")
    with once(begun, kill) as killed:
        zicl("evaluate", *given, "-o", tmp_path / "results", *options, log=tmp_path / "log")
    assert killed, "the evaluation ended before a node was killed"
    assert files(tmp_path / "results") == files(local)


def test_rows_are_the_same_when_the_program_is_killed(given, local, cluster, tmp_path):
    command = ("evaluate", *given, "-o", tmp_path / "results", "--on", on(cluster, 2))
    with started(*command, log=tmp_path / "log") as process:
        while batches(tmp_path / "results") < 4 and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        assert process.wait(60) == -9, (tmp_path / "log").read_text()[-3000:]
    assert 4 <= batches(tmp_path / "results") < BATCHES
    zicl(*command, log=tmp_path / "log")
    assert files(tmp_path / "results") == files(local)


def test_workers_can_share_one_inference_server(given, cluster, tmp_path):
    server = VLLM()
    try:
        command = ("evaluate", *given, "--lm", server.spec, "--k", 2)
        zicl(*command, "-o", tmp_path / "cluster", "--on", on(cluster, 2), log=tmp_path / "log")
        requests = server.count("/v1/completions")
        assert requests > 40
        # Responses are cached by request: the same ones are not sent again.
        zicl(*command, "-o", tmp_path / "local", "--threads", 1, log=tmp_path / "log")
        assert server.count("/v1/completions") - requests < 10
    finally:
        server.close()
    assert files(tmp_path / "cluster") == files(tmp_path / "local")


def test_an_error_of_a_worker_is_reported_as_on_one_machine(given, cluster, tmp_path):
    log = tmp_path / "log"
    options = ("--on", on(cluster, 2), "-o", tmp_path / "results")
    with started("evaluate", *given, *options, "--server", "requests=4", log=log) as process:
        assert process.wait(300) == 2
    text = log.read_text()
    assert "is for a model behind a server" in text
    assert "Traceback" not in text
