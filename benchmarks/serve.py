"""Compare the server with the library it serves, in one run: throughput, refusals, memory.

    python benchmarks/serve.py            # a table
    python benchmarks/serve.py --json     # {"clients": {"1": {"of_library": …}, …}, "refused": …, "memory": …}

Throughput: 1, 8 and 32 clients, each sending one text at a time and waiting for its answer, with the default model;
the library classifies the same texts in one call, before and after each. Refusals: with the queue full, the time
until 503. Memory: resident size over some thousand requests of different texts, with a tiny model.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil
from machine import best_of, verdict

LABELS = ["terrible", "great"]
CLIENTS = (1, 8, 32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--texts", type=int, default=96, help="texts for each number of clients")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is run, in turn; the quickest counts")
    parser.add_argument("--refusals", type=int, default=200)
    parser.add_argument("--requests", type=int, default=2000, help="requests over which memory is watched")
    parser.add_argument("--warm", type=int, default=1500, help="requests before that: bounded caches fill up")
    options = parser.parse_args()

    import torch

    torch.set_num_threads(options.threads)
    from zicl import ZICLClassifier
    from zicl.apps.demo import example_index, reviews
    from zicl.lm.load import load_lm

    lm, index = load_lm(offline=True), example_index()
    classifier = ZICLClassifier(index, LABELS, lm, method="z-icl").fit()
    every = [text for text, _ in reviews("rotten_tomatoes")]
    texts = every[:: len(every) // options.texts][: options.texts]
    found, others = throughput(classifier, texts, options.rounds)
    say(f"throughput: {found}")
    refused = refusals(classifier, texts, options.refusals)
    say(f"refusals: {refused}")
    result = {
        "clients": found,
        "refused": refused,
        "memory": memory(lm, index, every, options.warm, options.requests),
        "machine": {"threads": options.threads, "other_load": round(others, 3), "verdict": verdict(others)},
    }
    print(json.dumps(result, indent=2) if options.json else table(result))


def throughput(classifier: Any, texts: list[str], rounds: int) -> tuple[dict[str, Any], float]:
    """Return the server's texts per second, also as a fraction of the library's, for each number of clients."""
    seconds: dict[str, list[float]] = {name: [] for name in ("library", *map(str, CLIENTS))}
    others = 0.0

    def timed(name: str, run: Any) -> None:
        nonlocal others
        # Cached queries would spare the next run its retrieval.
        classifier.index_.clear_cache()
        watch = best_of(run, 1)
        seconds[name].append(watch.seconds)
        others = max(others, watch.others)

    classifier.classify(texts[:4])
    for _ in range(rounds):
        for clients in CLIENTS:
            timed("library", lambda: classifier.classify(texts))
            # A new server for each run: its cache of answers is empty.
            with serving(classifier) as (port, _):
                timed(str(clients), lambda port=port, clients=clients: ask_all(port, texts, clients))
    best = {name: min(runs) for name, runs in seconds.items()}
    rows = {
        str(clients): {
            "texts_a_second": round(len(texts) / best[str(clients)], 2),
            "of_library": round(best["library"] / best[str(clients)], 3),
        }
        for clients in CLIENTS
    }
    return {"library": {"texts_a_second": round(len(texts) / best["library"], 2)}, **rows}, others


def refusals(classifier: Any, texts: list[str], count: int) -> dict[str, Any]:
    """Return how long a refusal takes while the queue is full and the model is busy."""
    from zicl.apps.serve.limits import RequestLimits

    with serving(classifier, RequestLimits(queue=8, texts=8)) as (port, service), ThreadPoolExecutor(32) as clients:
        stop = threading.Event()

        def fill(number: int) -> None:
            turn = 0
            while not stop.is_set():
                body = {"texts": [f"{text} ({number}, {turn})" for text in texts[:4]]}
                if post(port, body)[0] == 503:
                    time.sleep(0.01)
                turn += 1

        filling = [clients.submit(fill, number) for number in range(4)]
        seconds: list[float] = []
        while len(seconds) < count:
            if service.queue.waiting < 8:
                time.sleep(0.001)
                continue
            start = time.perf_counter()
            status, _ = post(port, {"texts": [f"one more {len(seconds)} {n}" for n in range(8)]})
            if status == 503:
                seconds.append(time.perf_counter() - start)
        stop.set()
        for each in filling:
            each.result()
    seconds.sort()
    return {
        "count": len(seconds),
        "median_ms": round(seconds[len(seconds) // 2] * 1000, 1),
        "longest_ms": round(seconds[-1] * 1000, 1),
    }


def memory(lm: Any, index: Any, texts: Sequence[str], warm: int, requests: int) -> dict[str, Any]:
    """Return the resident size before and after many requests of different texts, half of them explained."""
    from zicl import ZICLClassifier

    classifier = ZICLClassifier(index, LABELS, tiny(lm), method="z-icl").fit()
    process = psutil.Process()

    def ask(port: int, first: int, count: int) -> None:
        def one(number: int) -> int:
            body = {"text": f"{texts[number % len(texts)]} ({number})", "explain": number % 2 == 0}
            return post(port, body)[0]

        with ThreadPoolExecutor(8) as clients:
            assert set(clients.map(one, range(first, first + count))) == {200}
        gc.collect()

    with serving(classifier) as (port, _):
        ask(port, 0, warm)
        sizes = [process.memory_info().rss]
        for part in range(4):
            ask(port, warm + part * requests // 4, requests // 4)
            sizes.append(process.memory_info().rss)
    return {
        "requests": requests,
        "megabytes": [round(size / 2**20, 1) for size in sizes],
        "grown_mb": round((sizes[-1] - sizes[0]) / 2**20, 1),
    }


def tiny(lm: Any) -> Any:
    """Return a model of the same family with the same tokenizer, too small to take time."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from zicl.lm.hf import HFLanguageModel

    config = type(lm.forward.model.config)(
        **{
            **lm.forward.model.config.to_dict(),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
        }
    )
    model = AutoModelForCausalLM.from_config(config)
    tokenizer = AutoTokenizer.from_pretrained(lm.forward.model.config._name_or_path)
    return HFLanguageModel(model, tokenizer, name="tiny", identity="tiny")


@contextmanager
def serving(classifier: Any, limits: Any = None) -> Iterator[tuple[int, Any]]:
    """Run the application on a port of this machine, in a thread of this process."""
    import uvicorn

    from zicl.apps.serve.app import make_app
    from zicl.apps.serve.limits import RequestLimits
    from zicl.apps.serve.page import load_page
    from zicl.apps.serve.security import Access
    from zicl.apps.serve.server import listen, uvicorn_config
    from zicl.apps.serve.service import Service

    listener, access = listen(Access(port=0))
    service, loaded = Service(lambda: classifier, limits or RequestLimits()), threading.Event()
    service.on_loaded = loaded.set
    server = uvicorn.Server(uvicorn_config(make_app(service, access, load_page()), service.limits.deadline))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    with listener:
        thread.start()
        loaded.wait()
        try:
            yield access.port, service
        finally:
            server.should_exit = True
            thread.join()


def ask_all(port: int, texts: list[str], clients: int) -> None:
    """Send every text once, one per request, from several clients that each wait for their answer."""
    with ThreadPoolExecutor(clients) as pool:
        statuses = set(pool.map(lambda text: post(port, {"text": text})[0], texts))
    assert statuses == {200}, statuses


def post(port: int, body: dict[str, Any]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/classify", json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


def table(result: dict[str, Any]) -> str:
    lines = [f"library, one call: {result['clients']['library']['texts_a_second']} texts a second"]
    lines += [
        f"{clients:>3} clients: {result['clients'][str(clients)]['texts_a_second']} texts a second, "
        f"{result['clients'][str(clients)]['of_library']:.0%} of the library"
        for clients in CLIENTS
    ]
    refused, grown = result["refused"], result["memory"]
    lines.append(f"refused with a full queue: {refused['median_ms']} ms, at most {refused['longest_ms']} ms")
    lines.append(f"memory over {grown['requests']:,} requests: {grown['grown_mb']:+} MB {grown['megabytes']}")
    return "\n".join([*lines, result["machine"]["verdict"]])


if __name__ == "__main__":
    main()
