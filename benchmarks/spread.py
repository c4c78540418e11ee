"""Scaling: the same work on one worker and on two workers of a Ray cluster, with one thread each.

    python benchmarks/spread.py            # a table
    python benchmarks/spread.py --json > benchmarks/results/spread.json
    python benchmarks/spread.py --rounds 1 --parts pile --json > rates.json

Splits and embeds IMDB reviews, evaluates Z-ICL on Rotten Tomatoes sentences with the demo corpus and the default
models, and labels these sentences with z-icl+ (``pile``: encode groups of 1,024, ask the language model about groups of
16, label chunks of 1,024 and write them), on a Ray cluster of this machine, in rounds: one worker, two, one, two.
Rates of all but splitting count only while all workers are busy: without loading, and without the last pieces, when
some workers are idle. Splitting is timed from start to end, including Ray Data's start for every 64 MB. Ray's overhead
per batch is the time of one worker's batches minus its computing time. Reading, deduplicating and storing are done by
the command: they are timed in this process, with sentences that are already split; so is what the command does for each
row that it labels (read it, keep it, write it), with predictions that are already there, and the peak of its memory.
Before each part the load of other processes is measured. Two workers share this machine's memory bandwidth and caches
with each other, and its two cores with Ray and the command; workers on two machines do not. Needs zicl[ray].
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import psutil
from evaluate import write_task
from machine import matmul_rate, verdict, watch

THREADS = 1
WORKERS = {"one": 1, "two": 2}
PARTS = ("splitting", "embedding", "evaluating", "pile")
# The steps of z-icl+ that workers do; each is a rate of its own.
STEPS = ("encoding", "asking", "labelling")
# Rows of a chunk, as zicl classify forms them where no language model is asked about each.
LABELLED = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--reviews", type=int, default=24_000, help="reviews to split")
    parser.add_argument("--shards", type=int, default=10, help="shards of 2,048 sentences to embed")
    parser.add_argument("--examples", type=int, default=96, help="examples to evaluate, four per batch")
    parser.add_argument("--pile", type=int, default=8_192, help="texts that z-icl+ learns from")
    parser.add_argument("--asked", type=int, default=128, help="of these, texts to ask the language model about")
    parser.add_argument("--texts", type=int, default=8_192, help="other texts to label then")
    parser.add_argument("--rows", type=int, default=102_400, help="rows to measure the command's share with")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(THREADS)
    others = [other_load()]
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result, loads = measure(Path(folder), arguments)
    result["machine"] = {
        "threads_a_worker": THREADS,
        "minutes": round((time.perf_counter() - begun) / 60, 1),
        "products_per_second_a_core": round(matmul_rate()),
        "verdict": verdict(max(others + loads)),
    }
    print(json.dumps(result, indent=2) if arguments.json else table(result))


def measure(place: Path, arguments: argparse.Namespace) -> tuple[dict[str, Any], list[float]]:
    """Return the rates of the parts that are asked for, and the load of other processes after each."""
    from zicl.apps.demo import reviews

    parts, result = arguments.parts, dict[str, Any]()
    corpora = [name for name in parts if name in ("splitting", "embedding")]
    names = [*(name for name in parts if name != "pile"), *(STEPS if "pile" in parts else ())]
    runs: dict[str, dict[str, list[dict[str, float]]]] = {name: {"one": [], "two": []} for name in names}
    others, raw = list[float](), place / "reviews.jsonl"
    if corpora:
        texts = [text.replace("<br />", "\n") for text, _ in reviews("imdb")][: arguments.reviews]
        raw.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        result["storing"] = storing(place)
    if "pile" in parts:
        result["command"] = command(place, arguments.rows)
    for number in range(arguments.rounds):
        for name, workers in WORKERS.items():
            here = place / f"{number}-{name}"
            here.mkdir()
            if corpora:
                corpus, split = splitting(raw, here, workers)
                runs.get("splitting", {name: []})[name].append(split)
                others.append(other_load())
            if "embedding" in parts:
                runs["embedding"][name].append(embedding(corpus, here, workers, arguments.shards))
                others.append(other_load())
            if "evaluating" in parts:
                runs["evaluating"][name].append(evaluating(here, workers, arguments.examples))
                others.append(other_load())
            if "pile" in parts:
                for step, rate in pile(here, workers, arguments).items():
                    runs[step][name].append(rate)
                others.append(other_load())
    return {**result, **{name: summarize(found) for name, found in runs.items()}}, others


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


def pile(folder: Path, workers: int, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the rates of z-icl+'s steps: texts encoded, texts asked about, other texts labelled and written."""
    from zicl import Pile, ZICLClassifier
    from zicl.apps.cluster.classify import ClusterFit
    from zicl.apps.cluster.connect import connect
    from zicl.cli.classify import ClassifyOptions
    from zicl.cli.cluster_options import classification_workers
    from zicl.inputs.tables import read_rows
    from zicl.score import fit

    rows = read_rows(str(write_texts(folder / "texts.csv", arguments.pile + arguments.texts)))
    ends: dict[str, list[float]] = {step: [] for step in STEPS}
    memory = dict.fromkeys(STEPS, 0)

    def noted(step: str, results: Iterable[Any]) -> Iterator[Any]:
        for each in results:
            ends[step].append(time.perf_counter())
            memory[step] = max(memory[step], worker_memory("ClassifyWorker"))
            yield each

    class TimedFit(ClusterFit):
        """Note when each group is done."""

        def encode(self, classifier: Any, groups: Any) -> Iterator[Any]:
            return noted("encoding", super().encode(classifier, groups))

        def ask(self, classifier: Any, groups: Any) -> Iterator[Any]:
            return noted("asking", super().ask(classifier, groups))

    with home_without_answers(folder), connect("ray", workers=workers, threads=THREADS) as cluster:
        start = partial(classification_workers, ClassifyOptions(labels="terrible,great"), cluster)
        settings = Pile(method="mixture", texts=arguments.pile, lm_rows=arguments.asked)
        fitted = ZICLClassifier(labels=["terrible", "great"], pile=settings).fit(
            [row.text for row in rows[: arguments.pile]], compute=TimedFit(start, workers)
        )
        with start(fitted) as pool:
            for _ in noted("labelling", label_and_write(fitted, rows[arguments.pile :], folder / "labels.csv", pool)):
                pass
    sizes = {"encoding": fit._ENCODED, "asking": fit._ASKED, "labelling": LABELLED}
    return {
        step: {
            # The first call of each worker finds it cold.
            "per_second": round(sizes[step] * busy_rate(times[workers:], workers), 2),
            "worker_gb": round(memory[step] / 1e9, 2),
        }
        for step, times in ends.items()
    }


def label_and_write(classifier: Any, rows: Any, path: Path, pool: Any) -> Iterator[list[Any]]:
    """Do with each row what zicl classify does; yield the lines of its summary for each chunk."""
    from zicl.apps.cluster.classify import classify_on
    from zicl.cli.output_columns import LabelSet, added_values
    from zicl.cli.record_writer import RecordWriter
    from zicl.cli.summary import SummaryLine

    label_sets = [LabelSet(classifier)]
    writer = RecordWriter.of(label_sets, None, review=False, json_output=False)
    writer.open(path, {}, rows, "id", ["text"], overwrite=True)
    chunks = [rows[n : n + LABELLED] for n in range(0, len(rows), LABELLED)]
    predicted = classify_on(pool, classifier, (([row.text for row in chunk], None) for chunk in chunks))
    for chunk, predictions in zip(chunks, predicted, strict=True):
        writer.write(chunk, [added_values([prediction], label_sets, None) for prediction in predictions])
        yield [SummaryLine.of(row, prediction, cut=False) for row, prediction in zip(chunk, predictions, strict=True)]


@contextmanager
def home_without_answers(folder: Path) -> Iterator[None]:
    """Use another ZICL_HOME with the same models: no answer of an earlier run is stored there."""
    from zicl._util.files import home

    before, other = os.environ.get("ZICL_HOME"), folder / "home"
    other.mkdir()
    (other / "assets").symlink_to(home() / "assets")
    os.environ["ZICL_HOME"] = str(other)
    try:
        yield
    finally:
        os.environ.pop("ZICL_HOME")
        if before is not None:
            os.environ["ZICL_HOME"] = before


class ReadyPredictions:
    """A pool whose predictions are there already: what the command itself does is left."""

    def __init__(self, predictions: Any) -> None:
        self._chunk = pickle.dumps(predictions)

    def run_in_order(self, calls: Iterable[Any]) -> Iterator[Any]:
        """Yield the same predictions for every call, unpickled as they would be."""
        for call in calls:
            yield pickle.loads(self._chunk)[: len(call.argument[0])]


def command(folder: Path, count: int) -> dict[str, float]:
    """Return what the command does and holds for each row, measured in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_command, (folder, count))


def _command(folder: Path, count: int) -> dict[str, float]:
    from zicl import ZICLClassifier
    from zicl.inputs.tables import read_rows
    from zicl.score.fit import sample_pile

    path = write_texts(folder / "rows.csv", count)
    some = [row.text for row in read_rows(str(write_texts(folder / "some.csv", 1024)))]
    fitted = ZICLClassifier(labels=["terrible", "great"]).fit(some)
    pool, before = ReadyPredictions(fitted.classify(some)), peak_memory()
    begun = time.perf_counter()
    rows = read_rows(str(path))
    sample_pile([row.text for row in rows], (), 5000, 0)
    read = time.perf_counter()
    lines = list(chain.from_iterable(label_and_write(fitted, rows, folder / "rows-labels.csv", pool)))
    return {
        "read_per_second": round(count / (read - begun), 1),
        "written_per_second": round(len(lines) / (time.perf_counter() - read), 1),
        "bytes_a_row": round((peak_memory() - before) / count, 1),
        "input_bytes_a_row": round(path.stat().st_size / count, 1),
        "output_bytes_a_row": round((folder / "rows-labels.csv").stat().st_size / count, 1),
    }


def peak_memory() -> int:
    """Return the most memory that this process had at any time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write_texts(path: Path, count: int) -> Path:
    """Write distinct sentences; beyond those that there are, they are numbered."""
    import csv

    from zicl.apps.demo import example_sentences

    some = [text for text, _ in example_sentences(min(count, 10_000))]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text"])
        writer.writerows((n, some[n % len(some)] + (f" {n}" if n >= len(some) else "")) for n in range(count))
    return path


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
    for part in ("splitting", "embedding", "evaluating", *STEPS):
        if part in result:
            values = "".join(f"{mean(run['per_second'] for run in result[part][name]):>14,.2f}" for name in WORKERS)
            lines.append(f"{part:12}{values}{result[part]['two_to_one']:>9}")
    if "evaluating" in result:
        one = result["evaluating"]["one"]
        overhead, spent = (mean(run[key] for run in one) for key in ("overhead_ms_a_batch", "computed_seconds_a_batch"))
        lines.append(f"Ray's overhead of a batch: {overhead:.1f} ms beside {1000 * spent:.0f} of computing")
    if "storing" in result:
        stored = result["storing"]["per_second"]
        lines.append(f"reading, deduplicating and storing alone: {stored:,.0f} sentences a second")
    if "command" in result:
        read, written, size = (
            result["command"][key] for key in ("read_per_second", "written_per_second", "bytes_a_row")
        )
        lines.append(
            f"the command alone: {read:,.0f} rows a second read, {written:,.0f} written; {size:,.0f} bytes each"
        )
    lines.append(result["machine"]["verdict"])
    return "\n".join(lines)


if __name__ == "__main__":
    main()
