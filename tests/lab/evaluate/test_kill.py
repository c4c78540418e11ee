"""A run killed at any moment and started again ends with exactly the rows of an undisturbed one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.evaluate.conftest import write_task
from zicl.lab.evaluate.store import MANIFEST, ROWS, SEGMENTS, ResultsFolder

KILLS = 10
# A run to be killed waits for that after so many batches more than it is killed at: it cannot end before.
SLACK = 4
ROOT = Path(__file__).parents[3]
# Modules are imported once; every run is a process forked from that, before any library has started a thread.
SCRIPT = """
import os, signal, sys
from pathlib import Path
import faiss, transformers.models.llama.modeling_llama, zicl.lm.hf
from tests.conftest import BagEncoder, tiny_lm
from tests.lab.evaluate.conftest import make_experiment
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.run import evaluate
from zicl.retrieve.index import Index

def run(folder, name, limit):
    methods = ["majority", "no-demos", "naive", "z-icl", "icl-gold"]
    experiment = make_experiment(folder / "tasks.toml", methods=methods)
    index = Index.open(folder / "raw.zicl", encoder=BagEncoder())
    written = 0

    def report(stage, done, total=None, note=""):
        nonlocal written
        written += stage == "evaluating" and done > 0
        while written >= limit:
            signal.pause()

    evaluate(ExperimentContext(experiment, lm=tiny_lm(), index=index), folder / name, report=report)

for line in sys.stdin:
    name, limit = line.split()
    child = os.fork()
    if not child:
        run(Path(sys.argv[1]), name, float(limit))
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def runs(tmp_path, index) -> Iterator[subprocess.Popen[str]]:
    """A process that forks a run for each line it reads. All of them are killed if they hang."""
    write_task(tmp_path, test=24)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **pipes)
    watchdog = threading.Timer(300, os.killpg, (process.pid, signal.SIGKILL))
    watchdog.start()
    with process:
        yield process
    watchdog.cancel()


@contextmanager
def started(runs: subprocess.Popen[str], name: str, limit: float, code: int) -> Iterator[int]:
    """A run in a process of its own, which has to end with this code."""
    assert runs.stdin is not None
    assert runs.stdout is not None
    runs.stdin.write(f"{name} {limit}\n")
    runs.stdin.flush()
    yield int(runs.stdout.readline())
    assert int(runs.stdout.readline()) == code


def test_ten_kills_change_no_byte(tmp_path, runs) -> None:
    with started(runs, "undisturbed", float("inf"), 0):
        pass
    expected = rows(tmp_path / "undisturbed")
    draw = random.Random(7)
    for _ in range(KILLS):
        more = draw.randrange(1, 4)
        before = segments(tmp_path / "killed")
        with started(runs, "killed", more + SLACK, -signal.SIGKILL) as process:
            deadline = time.monotonic() + 60
            while segments(tmp_path / "killed") < before + more:
                assert time.monotonic() < deadline, "the run wrote nothing"
                time.sleep(0.001)
            time.sleep(draw.uniform(0, 0.05))
            os.kill(process, signal.SIGKILL)
        # Segments are complete or not there.
        found = rows(tmp_path / "killed")
        assert found == {key: expected[key] for key in found}
    assert 0 < len(rows(tmp_path / "killed")) < len(expected), "the kills fell before or behind the work"
    assert not (tmp_path / "killed" / ROWS).exists()
    with started(runs, "killed", float("inf"), 0):
        pass
    for name in (ROWS, MANIFEST):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()
    assert not (tmp_path / "killed" / SEGMENTS).exists()


def segments(folder: Path) -> int:
    return len(list((folder / SEGMENTS).glob("*.parquet")))


def rows(folder: Path) -> dict[tuple[str, ...], dict[str, object]]:
    if not (folder / MANIFEST).exists():
        return {}
    table = ResultsFolder.open(folder).table().to_pylist()
    return {tuple(str(value) for value in list(row.values())[:6]): row for row in table}
