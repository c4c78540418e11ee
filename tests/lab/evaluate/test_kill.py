"""A run killed at any moment and started again ends with exactly the rows of an undisturbed one."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.evaluate.conftest import write_task

KILLS = 10
ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys
from pathlib import Path
from tests.conftest import BagEncoder, tiny_lm
from tests.lab.evaluate.conftest import make_experiment
from zicl.lab.evaluate.run import evaluate
from zicl.lab.evaluate.context import ExperimentContext
from zicl.retrieve.index import Index

folder = Path(sys.argv[1])
world = ExperimentContext(
    make_experiment(folder / "tasks.toml", methods=["majority", "no-demos", "naive", "z-icl", "icl-gold"]),
    lm=tiny_lm(),
    index=Index.open(folder / "raw.zicl", encoder=BagEncoder()),
)
print("ready", flush=True)
evaluate(world, folder / sys.argv[2])
"""


@contextmanager
def started(folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, up to where it begins to work."""
    command = [sys.executable, "-c", SCRIPT, str(folder), name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def test_ten_kills_change_no_byte(tmp_path, index) -> None:
    write_task(tmp_path, test=40)
    with started(tmp_path, "undisturbed") as process:
        assert process.wait(300) == 0
    batches, draw = len(rows(tmp_path / "undisturbed")), random.Random(7)
    for _ in range(KILLS):
        wanted = len(rows(tmp_path / "killed")) + draw.randrange(batches // 12)
        with started(tmp_path, "killed") as process:
            while process.poll() is None and len(rows(tmp_path / "killed")) < wanted:
                time.sleep(0.001)
            time.sleep(draw.uniform(0, 0.05))
            process.kill()
            assert process.wait(60) == -9, "it ended before it was killed"
    assert 0 < len(rows(tmp_path / "killed")) < batches, "the kills fell before or behind the work"
    with started(tmp_path, "killed") as process:
        assert process.wait(300) == 0
    # Batches are written whole, so equal files are equal sorted rows.
    assert rows(tmp_path / "killed") == rows(tmp_path / "undisturbed")
    assert (tmp_path / "killed/manifest.json").read_bytes() == (tmp_path / "undisturbed/manifest.json").read_bytes()


def rows(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "rows").glob("*.parquet"))}
