"""What the machine can do, and whether anything else is using it while we measure."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil


@dataclass
class Watch:
    """Filled in when a block under ``watch()`` ends."""

    seconds: float = 0.0
    peak_mb: float = 0.0
    others: float = 0.0
    samples: list[int] = field(default_factory=list)


@contextmanager
def watch() -> Iterator[Watch]:
    """Measure time, peak memory of this process, and the share of the cores that other processes took."""
    process, result, stop = psutil.Process(), Watch(), threading.Event()

    def sample() -> None:
        while not stop.wait(0.02):
            result.samples.append(process.memory_info().rss)

    sampler = threading.Thread(target=sample, daemon=True)
    system, own, begun = psutil.cpu_times(), process.cpu_times(), time.perf_counter()
    sampler.start()
    yield result
    result.seconds = time.perf_counter() - begun
    stop.set()
    sampler.join()
    after, mine = psutil.cpu_times(), process.cpu_times()
    busy = sum(getattr(after, name) - getattr(system, name) for name in ("user", "system", "nice", "steal"))
    used = mine.user + mine.system - own.user - own.system
    result.others = max(0.0, (busy - used) / (result.seconds * (os.cpu_count() or 1)))
    result.peak_mb = max(result.samples, default=process.memory_info().rss) / 2**20


def best_of(run: Callable[[], object], times: int = 3) -> Watch:
    """The quickest of some runs: noise only ever makes a run slower. The most of other load is kept."""
    watches = []
    for _ in range(times):
        with watch() as found:
            run()
        watches.append(found)
    best = min(watches, key=lambda w: w.seconds)
    best.others = max(w.others for w in watches)
    return best


def matmul_rate(size: int = 1536) -> float:
    """Float32 matrix-multiply operations a second, the best of several products by MKL and by oneDNN."""
    import torch

    from zicl.lm.linear import multiply, supports_onednn

    a, b = torch.randn(size, size), torch.randn(size, size)
    products = [lambda: a @ b, *([lambda: multiply(a, b)] if supports_onednn(b) else [])]
    with torch.inference_mode():
        seconds = min(best_of(product, 1).seconds for _ in range(8) for product in products)
    return 2 * size**3 / seconds


def verdict(others: float) -> str:
    """Whether the figures can be believed."""
    if others > 0.08:
        return f"WORTHLESS: other processes took {others:.0%} of the cores; run it again on a quiet machine"
    return f"quiet machine: other processes took at most {others:.0%} of the cores"
