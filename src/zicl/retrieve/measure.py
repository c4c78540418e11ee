"""What a search finds, takes and needs, in a process of its own that holds nothing but the index."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zicl.retrieve import kinds as vectors
from zicl.retrieve.compressed import Compressed
from zicl.retrieve.effort import Effort
from zicl.retrieve.search import Selection, search

RECALL_AT = 16
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, eq=False)
class Questions:
    """Vectors of the index itself as queries, what an exact search finds for them, and how many are fetched at once.

    The vector asked with is not counted as found. More than sixteen are right where some are equally near.
    """

    queries: NDArray[np.float32]
    own: NDArray[np.int64]
    truth: Sequence[NDArray[np.int64]]
    fetch: int
    chosen: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Memory:
    """Bytes of a process: its own, and pages of files it has mapped, which the system may take back at any time."""

    anonymous: int | None
    mapped: int | None

    @classmethod
    def now(cls) -> Memory:
        """What this process holds; known on Linux only."""
        if not _STATUS.exists():
            return cls(None, None)
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
        return cls(*(int(lines[name].split()[0]) << 10 for name in ("RssAnon", "RssFile")))


@dataclass(frozen=True)
class Measured:
    """One way to search: recall at 16, the median time of a query, and the memory of the process afterwards."""

    kind: str
    effort: Effort
    recall: float
    milliseconds: float
    memory: Memory


def measure(kind: str, path: Path, questions: Questions, enough: float) -> list[Measured]:
    """Search the index in the file ``path`` with growing effort, until the recall is ``enough``."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure_here, kind, path, questions, enough).result()


def measure_here(kind: str, path: Path, questions: Questions, enough: float) -> list[Measured]:
    """The same in this process."""
    index = vectors.read(kind, path)
    only = None if questions.chosen is None else Selection.of(questions.chosen)

    def one(effort: Effort) -> Measured:
        def ask(number: int) -> NDArray[np.int64]:
            return search(index, questions.queries[number], questions.fetch, only, effort)[0]

        recall, milliseconds = asked(ask, questions)
        return Measured(kind, effort, recall, milliseconds, Memory.now())

    lists = getattr(index.lists if isinstance(index, Compressed) else index, "nlist", 0)
    return [found for efforts in ladders(kind, lists) for found in _climb(efforts, one, enough)]


def asked(ask: Callable[[int], NDArray[np.int64]], questions: Questions) -> tuple[float, float]:
    """Recall and median milliseconds of one query after another; asked twice, and timed when pages are warm."""
    hits, seconds = [], []
    for number, (own, truth) in enumerate(zip(questions.own, questions.truth, strict=True)):
        found = ask(number)
        right = set(found[found != own][:RECALL_AT].tolist()) & set(truth.tolist())
        hits.append(len(right) / min(RECALL_AT, len(truth)))
    for number in range(len(questions.queries)):
        begun = time.perf_counter()
        ask(number)
        seconds.append(time.perf_counter() - begun)
    return float(np.mean(hits)), float(np.median(seconds)) * 1000


def ladders(kind: str, lists: int) -> list[list[Effort]]:
    """The efforts to try, in rows of growing ones.

    >>> [[str(effort) for effort in row] for row in ladders("ivf", 20)]
    [['nprobe=4', 'nprobe=8', 'nprobe=16', 'nprobe=20']]
    """
    if kind == "hnsw":
        return [[Effort(ef=1 << power) for power in range(6, 12)]]
    if lists == 0:
        return [[Effort()]]
    probes = [*(1 << power for power in range(2, 13) if 1 << power < lists), lists]
    factors: Sequence[int | None] = {"ivf-sq8": (1, 2), "ivf-pq": (2, 4, 8, 16)}.get(kind, (None,))
    return [[Effort(nprobe=probe, refine=factor) for probe in probes] for factor in factors]


def _climb(efforts: Iterable[Effort], one: Callable[[Effort], Measured], enough: float) -> list[Measured]:
    """Measure until one is good enough: what looks further is slower."""
    found: list[Measured] = []
    for effort in efforts:
        found.append(one(effort))
        if found[-1].recall >= enough:
            break
    return found
