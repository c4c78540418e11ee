"""Scaling: the same work on one worker and on two workers of a Ray cluster, with one thread each.

    python benchmarks/spread.py            # a table
    python benchmarks/spread.py --json > benchmarks/results/spread.json

Splits and embeds IMDB reviews, and evaluates Z-ICL on Rotten Tomatoes sentences with the demo corpus and the default
models, on a Ray cluster of this machine, in rounds: one worker, two, one, two. Rates of embedding and evaluating count
only while all workers are busy: without loading, and without the last pieces, when some workers are idle. Splitting is
timed from start to end, including Ray Data's start for every 64 MB. Ray's overhead per batch is the time of one
worker's batches minus its computing time. Reading, deduplicating and storing are done by the command: they are timed in
this process, with sentences that are already split. Before each part the load of other processes is measured. Two
workers share this machine's memory bandwidth and caches with each other, and its two cores with Ray and the command;
workers on two machines do not. Needs zicl[ray].
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import psutil
from evaluate import write_task
from machine import matmul_rate, verdict, watch

THREADS = 1
WORKERS = {"one": 1, "two": 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--reviews", type=int, default=24_000, help="reviews to split")
    parser.add_argument("--shards", type=int, default=10, help="shards of 2,048 sentences to embed")
    parser.add_argument("--examples", type=int, default=96, help="examples to evaluate, four per batch")
    arguments = parser.parse_args()

    import torch

    from zicl.apps.demo import reviews

    torch.set_num_threads(THREADS)
    texts = [text.replace("<br />", "\n") for text, _ in reviews("imdb")][: arguments.reviews]
    parts: dict[str, dict[str, list[dict[str, float]]]] = {
        name: {"one": [], "two": []} for name in ("splitting", "embedding", "evaluating")
    }
    others = [other_load()]
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "reviews.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        stored = storing(place)
        for number in range(arguments.rounds):
            for name, workers in WORKERS.items():
                here = place / f"{number}-{name}"
                here.mkdir()
                corpus, split = splitting(place / "reviews.jsonl", here, workers)
                parts["splitting"][name].append(split)
                others.append(other_load())
                parts["embedding"][name].append(embedding(corpus, here, workers, arguments.shards))
                others.append(other_load())
                parts["evaluating"][name].append(evaluating(here, workers, arguments.examples))
                others.append(other_load())
    result: dict[str, Any] = {"storing": stored, **{name: summarize(runs) for name, runs in parts.items()}}
    result["machine"] = {
        "threads_a_worker": THREADS,
        "minutes": round((time.perf_counter() - begun) / 60, 1),
        "products_per_second_a_core": round(matmul_rate()),
        "verdict": verdict(max(others)),
    }
    print(json.dumps(result, indent=2) if arguments.json else table(result))


def other_load() -> float:
    """Return the share of the cores that other processes use while this one waits."""
    time.sleep(3)
    with watch() as load:
        time.sleep(1)
    return load.others


def summarize(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return the runs of all rounds, and the ratio of two workers to one: of the means, and in each round."""
    rates = {name: [run["per_second"] for run in rounds] for name, rounds in runs.items()}
    each = [round(two / one, 2) for one, two in zip(rates["one"], rates["two"], strict=True)]
    return {**runs, "two_to_one": round(mean(rates["two"]) / mean(rates["one"]), 2), "two_to_one_each_round": each}


def busy_rate(ends: list[float], workers: int) -> float:
    """Return pieces per second from the times at which they were done, while no worker was idle."""
    busy = sorted(ends)[: len(ends) - workers + 1]
    return (len(busy) - 1) / (busy[-1] - busy[0])


def storing(folder: Path) -> dict[str, float]:
    """Read, deduplicate and store sentences that are already split; return sentences per second."""
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.sources import find_sources
    from zicl.corpus.splitter import get_splitter, split_locally

    sources, split = find_sources([str(folder / "reviews.jsonl")]), split_locally(get_splitter("sentencex"))
    known: dict[str, list[list[str]]] = {}

    def learn(texts: Iterable[str]) -> Iterator[list[list[str]]]:
        for text in texts:
            known[text] = next(iter(split([text])))
            yield known[text]

    build_corpus(sources, folder / "learnt.zicl", split=learn)
    begun = time.perf_counter()
    corpus = build_corpus(sources, folder / "stored.zicl", split=lambda texts: (known[text] for text in texts))
    return {"per_second": round(len(corpus) / (time.perf_counter() - begun), 1)}


def splitting(raw: Path, folder: Path, workers: int) -> tuple[Any, dict[str, float]]:
    """Read, split and store; return the corpus and sentences per second."""
    from zicl.apps.cluster.connect import connect
    from zicl.apps.cluster.ray_data import split_on
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.sources import find_sources

    with connect("ray", workers=workers, threads=THREADS) as cluster:
        split = split_on(cluster, "sentencex")
        # Processes start with their first tasks.
        list(split_on(cluster, "sentencex", characters=1)(["A process is started."] * 8 * workers))
        begun = time.perf_counter()
        corpus = build_corpus(find_sources([str(raw)]), folder / "raw.zicl", split=split)
        seconds = time.perf_counter() - begun
    size = raw.stat().st_size
    return corpus, {
        "per_second": round(len(corpus) / seconds, 1),
        "mb_per_second": round(size / seconds / 1e6, 2),
        "bytes_a_sentence": round(size / len(corpus), 1),
    }


def embedding(corpus: Any, folder: Path, workers: int, count: int) -> dict[str, float]:
    """Return sentences per second, after the first shard of each worker."""
    from zicl.apps.cluster.connect import connect
    from zicl.apps.cluster.ray_data import embed_on
    from zicl.retrieve.encoder import load_encoder

    vectors = folder / "vectors"
    vectors.mkdir()
    starts = [2048 * number for number in range(count + workers)]
    with connect("ray", workers=workers, threads=THREADS) as cluster:
        for _ in embed_on(cluster, corpus, load_encoder("all-minilm-l6-v2"))(starts, vectors):
            pass
    ends = sorted(path.stat().st_mtime for path in vectors.glob("*.npy"))
    return {"per_second": round(2048 * busy_rate(ends[workers:], workers), 1)}


def evaluating(folder: Path, workers: int, count: int) -> dict[str, float]:
    """Return examples per second once the models are loaded, and the overhead per batch."""
    from zicl.apps.cluster.connect import connect
    from zicl.apps.cluster.evaluate import ClusterCompute, EvaluationWorker
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.apps.cluster.ray_workers import RayWorkers
    from zicl.apps.cluster.worker import WorkerSetup
    from zicl.apps.demo import example_index
    from zicl.lab.evaluate.context import ExperimentContext
    from zicl.lab.evaluate.experiment import Experiment
    from zicl.lab.evaluate.plan import batches

    settings: dict[str, Any] = {
        "tasks": ["Snippets"],
        "methods": ["z-icl"],
        "inferences": ["channel"],
        "seeds": [100],
        "batch": 4,
        "corpus": str(example_index().corpus.path),
        "task_file": str(write_task(folder, count)),
    }
    experiment = Experiment(**settings)
    context = ExperimentContext(experiment)
    todo = list(batches(experiment, context.examples))
    with connect("ray", workers=workers, threads=THREADS) as cluster:
        begun = time.perf_counter()
        arguments = partial(ExperimentContext, experiment), WorkerSetup(THREADS)
        with WorkerPool(RayWorkers(EvaluationWorker, arguments, cluster, print), workers) as pool:
            compute = ClusterCompute(pool, context.hashes)
            compute.manifest()
            start = time.perf_counter() - begun
            # In the first third every worker loads its models and computes what all its batches share.
            list(compute.rows(todo[: len(todo) // 3]))
            ends, computed = [], []
            for batch in compute.rows(todo[len(todo) // 3 :]):
                ends.append(time.perf_counter())
                computed.append(batch.seconds)
            memory = worker_memory("EvaluationWorker")
    rate = busy_rate(ends, workers)
    return {
        "per_second": round(experiment.batch * rate, 3),
        "computed_seconds_a_batch": round(mean(computed[1:]), 3),
        "overhead_ms_a_batch": round(1000 * (workers / rate - mean(computed[1:])), 1),
        "batches": len(ends),
        "start_seconds": round(start, 1),
        "worker_gb": round(memory / 1e9, 2),
    }


def worker_memory(name: str) -> int:
    """Return the memory of the largest worker."""
    sizes = [0]
    for process in psutil.process_iter(["cmdline", "memory_info"]):
        if f"ray::{name}" in " ".join(process.info["cmdline"] or []):
            sizes.append(process.info["memory_info"].rss)
    return max(sizes)


def table(result: dict[str, Any]) -> str:
    """Return the result as a readable table."""
    lines = [f"{'a second':12}{'one worker':>14}{'two':>14}{'two/one':>9}"]
    for part in ("splitting", "embedding", "evaluating"):
        values = "".join(f"{mean(run['per_second'] for run in result[part][name]):>14,.2f}" for name in WORKERS)
        lines.append(f"{part:12}{values}{result[part]['two_to_one']:>9}")
    one = result["evaluating"]["one"]
    overhead, computed = (mean(run[key] for run in one) for key in ("overhead_ms_a_batch", "computed_seconds_a_batch"))
    lines.append(f"Ray's overhead of a batch: {overhead:.1f} ms beside {1000 * computed:.0f} of computing")
    lines.append(f"reading, deduplicating and storing alone: {result['storing']['per_second']:,.0f} sentences a second")
    lines.append(result["machine"]["verdict"])
    return "\n".join(lines)


if __name__ == "__main__":
    main()
