"""Ask a real server ten thousand times, with faults mixed in, and check every answer against the right one.

    python benchmarks/soak.py            # a table; benchmarks/results/soak.json

The server is a process of its own, ``zicl serve`` with its default method, encoder and pile; the right answers are the
library's. One client asks short questions while nothing else runs, then beside jobs of 2,000 texts; then eight clients
ask everything that clients ask: single texts, batches, jobs in a stream, fits and answers with them, maps, synonyms,
sentences, information, nonsense; and some leave in the middle. Before and after that, a crowd asks for more fits than
the server admits at once. Memory is sampled all the time. After ``--minutes`` it ends with what it has.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from soak_known import COMMON, JOB, LABELS, ROOT, Known, KnownFit
from soak_visitor import ADMITTED, Record, Visitor, say

RESULT = ROOT / "benchmarks" / "results" / "soak.json"
# Between short questions, the client does something else.
PAUSE = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument(
        "--jobs", type=int, default=2, help="jobs of 2,000 texts, beside which short questions are asked"
    )
    parser.add_argument("--short", type=int, default=300, help="short questions while idle, and at most beside a job")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = soak(Path(folder), options)
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(table(result))
    sys.exit(not passed(result))


def passed(result: dict[str, Any]) -> bool:
    """Return whether all was asked, no answer was wrong, the queue is empty, and the server ended as it should."""
    quiet = result["left_in_queue"] == 0 and result["exit_status"] == 0
    return result["complete"] and not result["wrong"] and quiet


def soak(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    end = time.monotonic() + 60 * options.minutes
    say("right answers")
    known = Known(folder, COMMON + (2 * options.short + JOB) * options.jobs)
    with serving(folder) as (port, process):
        psutil.cpu_percent(None)
        record = Record(port)
        memory = Memory(process.pid, record)
        with memory.sampled():
            visitor = Visitor(record, known, seed=0)
            visitor.first()
            idle, loaded = [], []
            # In turn: whatever else the machine does falls on both.
            for number in range(options.jobs):
                say(f"idle, then beside job {number + 1}")
                for _ in range(options.short):
                    idle.append(visitor.short(known.fresh()))
                    time.sleep(PAUSE)
                loaded += beside_job(known, visitor, options.short)
            first, last = known.crowds
            say("more fits than are admitted")
            crowd(visitor, first)
            say("everything")
            everything(record, known, options, end)
            say("more fits than are admitted, after all others have left")
            crowd(visitor, last)
        load = psutil.cpu_percent(None)
        waiting = re.search(rb"(?m)^zicl_queue_waiting (\S+)", record.ask("GET", "/metrics")[1])
        process.send_signal(signal.SIGTERM)
        stopped = process.wait(60)
    return {
        "requests": record.requests,
        "kinds": dict(sorted(record.kinds.items())),
        "texts_checked": record.texts,
        "wrong": len(record.wrong),
        "first_wrong": record.wrong[:20],
        "left_in_queue": float(waiting[1]) if waiting else None,
        "exit_status": stopped,
        "short_ms": {
            "idle": quantiles(idle),
            "beside_a_job": quantiles(loaded),
            "ratio": {
                name: round(quantiles(loaded)[name] / quantiles(idle)[name], 2) for name in ("p50", "p99") if loaded
            },
        },
        "memory": memory.report(),
        "seconds": round(memory.seconds()),
        "method": "z-icl+",
        "machine": {"cpu_percent": load, "cores": psutil.cpu_count()},
        "complete": record.requests >= options.requests,
    }


class Memory:
    """The server's resident size, by the time and the requests so far."""

    def __init__(self, pid: int, record: Record) -> None:
        self._process, self._record, self._begun = psutil.Process(pid), record, time.monotonic()
        self._sizes: list[tuple[float, int, float]] = []

    def seconds(self) -> float:
        """Return how long it has lasted."""
        return time.monotonic() - self._begun

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """Sample the server's resident size every second."""
        stop = threading.Event()

        def sample() -> None:
            while not stop.wait(1):
                self._sizes.append((self.seconds(), self._record.requests, self._process.memory_info().rss / 2**20))

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def report(self) -> dict[str, Any]:
        """Return the largest size and the slope over the second half of all requests, when caches are warm."""
        late = [(n, size) for _, n, size in self._sizes if n >= self._sizes[-1][1] / 2]
        slope = float(np.polyfit([n for n, _ in late], [size for _, size in late], 1)[0]) if len(late) > 2 else 0.0
        step = max(1, len(self._sizes) // 40)
        return {
            "most_mb": round(max(size for _, _, size in self._sizes), 1),
            "first_mb": round(self._sizes[0][2], 1),
            "last_mb": round(self._sizes[-1][2], 1),
            "late_mb_per_1000_requests": round(1000 * slope, 3),
            "seconds_requests_mb": [[round(t), n, round(size, 1)] for t, n, size in self._sizes[::step]],
        }


def beside_job(known: Known, visitor: Visitor, most: int) -> list[float]:
    """Return the milliseconds of short questions that are asked while a large job runs."""
    texts, taken = known.job(), []
    job = threading.Thread(target=visitor.stream, args=(texts, f"job of {JOB}"))
    job.start()
    time.sleep(1)
    for _ in range(most):
        milliseconds = visitor.short(known.fresh())
        if not job.is_alive():
            break
        taken.append(milliseconds)
        time.sleep(PAUSE)
    job.join()
    return taken


def crowd(visitor: Visitor, fits: list[KnownFit]) -> None:
    """Ask for more fits at the same time than the server admits: as many as it admits are learned."""
    record, known = visitor.record, visitor.known
    # What others have left, if anything is, ends before this one is answered.
    end = time.monotonic() + 60
    while not visitor.fit(known.fits[0]) and time.monotonic() < end:
        time.sleep(1)
    with ThreadPoolExecutor(len(fits)) as pool:
        visitors = [Visitor(record, known, seed=number) for number in range(len(fits))]
        learned = sum(pool.map(Visitor.fit, visitors, fits))
    if not ADMITTED <= learned < len(fits):
        record.complain("crowd", f"{learned} of {len(fits)} fits were learned, and {ADMITTED} are admitted at once")


def everything(record: Record, known: Known, options: argparse.Namespace, end: float) -> None:
    """Let several clients ask everything until all requests are made."""

    def visit(number: int) -> None:
        visitor = Visitor(record, known, seed=number + 1)
        while record.requests < options.requests and time.monotonic() < end:
            try:
                visitor.anything()
            except (OSError, http.client.HTTPException, ValueError) as error:
                record.count("lost", f"{type(error).__name__}: {error}")

    with ThreadPoolExecutor(options.clients) as pool:
        list(pool.map(visit, range(options.clients)))


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run ``zicl serve`` as a user does; the limits let a job of 2,000 texts in."""
    limits = ["--max-texts", str(JOB), "--queue", "8192", "--max-body", str(4 << 20), "--deadline", "900"]
    command = [sys.executable, "-m", "zicl", "serve", str(folder / "notes.zicl"), "--labels", ",".join(LABELS)]
    command += ["--fit", str(folder / "pile.txt"), "--port", "0", "--no-open"]
    log = folder / "log.txt"
    with log.open("wb") as stream:
        process = subprocess.Popen([*command, *limits, "--offline"], stderr=stream)
    try:
        while "ready" not in log.read_text():
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.2)
        yield int(re.findall(r"http://127\.0\.0\.1:(\d+)/", log.read_text())[0]), process
    finally:
        process.kill()
        process.wait()


def quantiles(milliseconds: list[float]) -> dict[str, float]:
    if not milliseconds:
        return {"count": 0, "p50": float("nan"), "p99": float("nan"), "most": float("nan")}
    p50, p99 = np.percentile(milliseconds, [50, 99])
    return {
        "count": len(milliseconds),
        "p50": round(float(p50), 1),
        "p99": round(float(p99), 1),
        "most": round(max(milliseconds), 1),
    }


def table(result: dict[str, Any]) -> str:
    short, memory = result["short_ms"], result["memory"]
    rows = [f"{name:>14}  p50 {short[name]['p50']:>7} ms  p99 {short[name]['p99']:>7} ms" for name in list(short)[:2]]
    return "\n".join(
        [
            f"{result['requests']:,} requests in {result['seconds']} s, {result['texts_checked']:,} texts checked",
            f"wrong, lost or doubled: {result['wrong']}; left in the queue: {result['left_in_queue']:g}",
            *rows,
            f"beside a job of {JOB:,} texts: p50 {short['ratio']['p50']}, p99 {short['ratio']['p99']} times idle",
            f"memory: at most {memory['most_mb']} MB, {memory['late_mb_per_1000_requests']:+} MB per 1,000 requests",
            *result["first_wrong"],
        ]
    )


if __name__ == "__main__":
    main()
