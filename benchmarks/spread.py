"""The scaling report: the same work in one process, on one worker and on two of a Ray cluster, a thread each.

    python benchmarks/spread.py            # a table
    python benchmarks/spread.py --json > benchmarks/results/spread.json

Splitting and embedding IMDB reviews, and evaluating Z-ICL on Rotten Tomatoes sentences with the demo corpus and the
default models, on a Ray cluster of this machine. The time to start workers and load models is told apart: it is paid
once. Ray's overhead of a batch is what a worker's batches take beyond the time it computes. Two workers share this
machine's memory bandwidth and caches, which those on two machines do not. Needs zicl[ray].
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from evaluate import write_task
from machine import matmul_rate, watch

THREADS = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--reviews", type=int, default=12_000, help="reviews to split")
    parser.add_argument("--shards", type=int, default=6, help="shards of 2,048 sentences to embed")
    parser.add_argument("--examples", type=int, default=96, help="examples to evaluate, four a batch")
    arguments = parser.parse_args()

    import torch

    from zicl.examples import reviews

    torch.set_num_threads(THREADS)
    texts = [text.replace("<br />", "\n") for text, _ in reviews("imdb")][: arguments.reviews]
    result: dict[str, Any] = {"splitting": {}, "embedding": {}, "evaluating": {}}
    with tempfile.TemporaryDirectory() as folder, watch() as load:
        place = Path(folder)
        (place / "reviews.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        corpus = None
        for name, workers in (("process", 0), ("one", 1), ("two", 2)):
            corpus, result["splitting"][name] = splitting(place, workers)
            result["embedding"][name] = embedding(corpus, place, workers, arguments.shards)
            result["evaluating"][name] = evaluating(place, workers, arguments.examples)
    for part in ("splitting", "embedding", "evaluating"):
        result[part]["two_to_one"] = round(result[part]["two"]["per_second"] / result[part]["one"]["per_second"], 2)
    result["machine"] = {
        "threads_a_worker": THREADS,
        "minutes": round(load.seconds / 60, 1),
        "products_per_second_a_core": round(matmul_rate()),
    }
    print(json.dumps(result, indent=2) if arguments.json else table(result))


def splitting(folder: Path, workers: int) -> tuple[Any, dict[str, float]]:
    """Reading, splitting and storing; sentences a second."""
    from zicl.corpus.build import build_corpus
    from zicl.corpus.sources import find_sources

    sources, target = find_sources([str(folder / "reviews.jsonl")]), folder / f"{workers}.zicl"
    if workers == 0:
        begun = time.perf_counter()
        corpus = build_corpus(sources, target)
        seconds = time.perf_counter() - begun
    else:
        from zicl.spread.cluster import connected
        from zicl.spread.split import split_on

        with connected("ray", workers=workers, threads=THREADS) as cluster:
            split = split_on(cluster, "sentencex")
            # Processes start with the first tasks they get.
            list(split_on(cluster, "sentencex", characters=1)(["A process is started."] * 8 * workers))
            begun = time.perf_counter()
            corpus = build_corpus(sources, target, split=split)
            seconds = time.perf_counter() - begun
    size = (folder / "reviews.jsonl").stat().st_size
    return corpus, {
        "per_second": round(len(corpus) / seconds, 1),
        "mb_per_second": round(size / seconds / 1e6, 2),
        "bytes_a_sentence": round(size / len(corpus), 1),
    }


def embedding(corpus: Any, folder: Path, workers: int, count: int) -> dict[str, float]:
    """Sentences a second between the first shard and the last."""
    from zicl.retrieve.build import embed_shard
    from zicl.retrieve.encoder import load_encoder

    encoder, partial_folder = load_encoder(), folder / f"vectors-{workers}"
    partial_folder.mkdir()
    starts = [2048 * number for number in range(count + max(1, workers))]
    begun, ends = time.perf_counter(), list[float]()
    if workers == 0:
        for start in starts:
            embed_shard(corpus, encoder, corpus.indexed, start, partial_folder)
            ends.append(time.perf_counter())
    else:
        from zicl.spread.cluster import connected
        from zicl.spread.embed import embed_on

        with connected("ray", workers=workers, threads=THREADS) as cluster:
            for _ in embed_on(cluster, corpus, encoder)(starts, partial_folder):
                pass
        files = sorted(path.stat().st_mtime for path in partial_folder.glob("*.npy"))
        ends = [begun + stamp - files[0] for stamp in files]
    # From the moment when every worker has its first shard behind it.
    first = max(1, workers) - 1
    return {"per_second": round(2048 * (len(ends) - 1 - first) / (ends[-1] - ends[first]), 1)}


def evaluating(folder: Path, workers: int, count: int) -> dict[str, float]:
    """Examples a second once the models are loaded, and what a batch costs beyond its computation."""
    from zicl.evaluate.experiment import Experiment
    from zicl.evaluate.plan import batches
    from zicl.evaluate.run import Here
    from zicl.evaluate.world import World
    from zicl.examples import example_index

    place = folder / f"task-{workers}"
    place.mkdir()
    settings: dict[str, Any] = {
        "tasks": ["Snippets"],
        "methods": ["z-icl"],
        "inferences": ["channel"],
        "seeds": [100],
        "batch": 4,
        "corpus": str(example_index().corpus.path),
        "task_file": str(write_task(place, count)),
    }
    experiment = Experiment(**settings)
    world = World(experiment)
    todo = list(batches(experiment, world.examples))
    if workers == 0:
        here = Here(world)
        here.manifest()
        return rows(here, todo)
    from zicl.spread.cluster import connected
    from zicl.spread.crew import RayCrew
    from zicl.spread.evaluate import EvaluationWorker, Spread
    from zicl.spread.pool import Pool
    from zicl.spread.worker import Conditions

    with connected("ray", workers=workers, threads=THREADS) as cluster:
        begun = time.perf_counter()
        arguments = partial(World, experiment), Conditions(THREADS)
        with Pool(RayCrew(EvaluationWorker, arguments, cluster, print), workers) as pool:
            compute = Spread(pool, world.hashes)
            compute.manifest()
            start = time.perf_counter() - begun
            return {**rows(compute, todo), "start_seconds": round(start, 1)}


def rows(compute: Any, todo: list[Any]) -> dict[str, float]:
    """The pace of the second half of the batches: in the first, every worker loads its models."""
    half = len(todo) // 2
    list(compute.rows(todo[:half]))
    # Asked for before the clock starts: one prompt of every kind is tried out first.
    coming = compute.rows(todo[half:])
    begun, computed = time.perf_counter(), 0.0
    for found in coming:
        computed += found.seconds
    seconds = time.perf_counter() - begun
    examples = sum(len(batch.examples) for batch in todo[half:])
    return {
        "per_second": round(examples / seconds, 3),
        "computed_seconds_a_batch": round(computed / (len(todo) - half), 3),
        "seconds": round(seconds, 2),
        "batches": len(todo) - half,
        "computing_seconds": round(computed, 2),
    }


def table(result: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{'':12}{'process':>12}{'one worker':>12}{'two':>12}{'two/one':>9}"]
    for part in ("splitting", "embedding", "evaluating"):
        found = result[part]
        values = "".join(f"{found[name]['per_second']:>12,.2f}" for name in ("process", "one", "two"))
        lines.append(f"{part:12}{values}{found['two_to_one']:>9}")
    one = result["evaluating"]["one"]
    overhead = (one["seconds"] - one["computing_seconds"]) / one["batches"]
    lines.append(f"Ray's overhead of a batch: {1000 * overhead:.1f} ms of {1000 * one['seconds'] / one['batches']:.0f}")
    lines.append(f"starting a worker and loading the models: {one['start_seconds']} s")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
