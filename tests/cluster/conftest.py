"""A real Ray cluster of two nodes on this machine, raw text and a task for it, and the program as a process."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.evaluate.conftest import write_task

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Ray's nodes then use loopback only.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
cluster_utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed: make test-cluster")

SENTENCES = 20_000
_WHO = (
    "The keeper",
    "My aunt",
    "A tired waiter",
    "The tall guide",
    "Our driver",
    "Nobody",
    "The painter",
    "A stranger",
)
_DID = ("mended", "forgot", "praised", "carried", "sold", "painted", "described", "burned", "admired", "lost")
_WHAT = ("the lamp", "a loaf of bread", "the old boat", "his second ticket", "the blue door", "a letter", "the map")
_WHEN = ("before noon", "in the rain", "on the last day", "without a word", "after the concert", "for nothing")
_WHERE = ("by the harbour", "near the mill", "at the station", "behind the hall", "in the kitchen", "on the hill")


def sentences(count: int) -> Iterator[str]:
    """Yield distinct sentences written for this project."""
    parts = itertools.product(_WHO, _DID, _WHAT, _WHEN, _WHERE)
    for who, did, what, when, where in itertools.islice(parts, count):
        yield f"{who} {did} {what} {when} {where}."


@pytest.fixture(scope="session")
def raw(tmp_path_factory) -> Path:
    """Write a folder of two domains, seven sentences per document."""
    folder = tmp_path_factory.mktemp("raw")
    written = list(sentences(SENTENCES))
    for name, part in (("harbour", written[: SENTENCES // 2]), ("mill", written[SENTENCES // 2 :])):
        documents = [" ".join(part[start : start + 7]) for start in range(0, len(part), 7)]
        lines = "".join(json.dumps({"text": document}) + "\n" for document in documents)
        (folder / f"{name}.jsonl").write_text(lines)
    return folder


@pytest.fixture(scope="session")
def task(tmp_path_factory) -> Path:
    """Write a task with forty examples."""
    return write_task(tmp_path_factory.mktemp("task"), test=40)


@pytest.fixture
def cluster() -> Iterator[cluster_utils.Cluster]:
    """Start two nodes with two cores each."""
    node = {"num_cpus": 2, "object_store_memory": 256 << 20}
    started_cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    started_cluster.second = started_cluster.add_node(**node)
    started_cluster.wait_for_nodes()
    yield started_cluster
    started_cluster.shutdown()


@contextmanager
def started(*arguments: object, log: Path, home: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Start the program as a process with one thread; ``home`` replaces ZICL_HOME."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    environment |= {"ZICL_HOME": str(home)} if home else {}
    command = [sys.executable, "-m", "zicl", *map(str, arguments)]
    with log.open("ab") as stream, subprocess.Popen(command, stdout=stream, stderr=stream, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def zicl(*arguments: object, log: Path, limit: float = 900, home: Path | None = None) -> None:
    """Run the program, and check that it succeeds."""
    with started(*arguments, log=log, home=home) as process:
        code = process.wait(limit)
    assert code == 0, log.read_text()[-3000:]


@contextmanager
def once(reached: Callable[[], bool], do: Callable[[], object]) -> Iterator[list[str]]:
    """Call ``do`` in the background as soon as ``reached()``; the yielded list says whether it was called."""
    ended, done = threading.Event(), []

    def watch() -> None:
        while not ended.is_set():
            if reached():
                do()
                done.append("done")
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def busy_worker(call: str) -> int | None:
    """Return the process of a worker of this cluster that is computing such a call; Ray names processes after it."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found = f"ray::{call}".encode() in path.read_bytes()
            # Its parent is a node, which this process started.
            if found and _parent(_parent(int(path.parent.name))) == os.getpid():
                return int(path.parent.name)
        except (OSError, StopIteration):
            continue
    return None


def _parent(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("PPid:")).split()[1])


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files of a folder except locks and times."""
    excluded = (".lock", "time.json", "build.key")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(excluded)
    }
