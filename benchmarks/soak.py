"""Ask a real server ten thousand times, with faults mixed in, and check every answer against the right one.

    python benchmarks/soak.py            # a table; benchmarks/results/soak.json

The server is a process of its own, ``zicl serve`` with its default method, encoder and pile; the right answers are the
library's. One client asks short questions while nothing else runs, then beside jobs of 2,000 texts; then eight clients
ask everything that clients ask: single texts, batches, jobs in a stream, synonyms, sentences, information, nonsense;
and some leave in the middle. Memory is sampled all the time. After ``--minutes`` it ends with what it has.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "soak.json"
LABELS = ["terrible", "great"]
OTHER_LABELS = [["sports", "business"], ["music", "food", "travel"], ["question", "complaint", "praise"]]
JOB, PILE, COMMON, TOLERANCE = 2000, 500, 500, 1e-4
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
        record = Record(port, process)
        with record.memory():
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
            say("everything")
            everything(record, known, options, end)
        load = psutil.cpu_percent(None)
        waiting = re.search(rb"(?m)^zicl_queue_waiting (\S+)", record.ask("GET", "/metrics")[1])
        process.send_signal(signal.SIGTERM)
        stopped = process.wait(60)
    return {
        "requests": sum(record.kinds.values()),
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
        "memory": record.memory_report(),
        "seconds": round(record.seconds()),
        "method": "z-icl+",
        "machine": {"cpu_percent": load, "cores": psutil.cpu_count()},
        "complete": sum(record.kinds.values()) >= options.requests,
    }


class Known:
    """Texts with the library's answers; each fresh text is given out once."""

    def __init__(self, folder: Path, count: int) -> None:
        from zicl import ZICLClassifier
        from zicl.apps.demo import reviews
        from zicl.corpus.builder import build_corpus
        from zicl.corpus.shards import BuildOptions
        from zicl.corpus.sources import find_sources
        from zicl.retrieve.builder import build_index
        from zicl.retrieve.encoder import load_encoder

        sources = {path.stem: [path] for path in sorted((ROOT / "docs" / "page_corpus").glob("*.txt"))}
        build_index(
            build_corpus(find_sources([], sources), folder / "notes.zicl", BuildOptions()), load_encoder(offline=True)
        )
        every = list(dict.fromkeys(text for text, _ in reviews("rotten_tomatoes", offline=True)))
        random.Random(0).shuffle(every)
        pile, self.texts = every[:PILE], every[PILE : PILE + count]
        (folder / "pile.txt").write_text("\n".join(pile), encoding="utf-8")
        classifier = ZICLClassifier(folder / "notes.zicl", LABELS, offline=True).fit(pile)
        self.right = {text: result.probabilities for text, result in self._answers(classifier, self.texts)}
        self.common = self.texts[:COMMON]
        self.others = []
        for labels in OTHER_LABELS:
            # The pile holds for the labels it was learned for only.
            other = ZICLClassifier(folder / "notes.zicl", labels, method="encoder", offline=True).fit()
            self.others.append((labels, {t: r.probabilities for t, r in self._answers(other, self.common[:100])}))
        self._next = COMMON
        self._lock = threading.Lock()

    @staticmethod
    def _answers(classifier: Any, texts: list[str]) -> Iterator[tuple[str, Any]]:
        yield from zip(texts, classifier.classify(texts), strict=True)

    def fresh(self) -> str:
        """Return a text that the server has not seen."""
        with self._lock:
            self._next += 1
            return self.texts[self._next - 1]

    def job(self) -> list[str]:
        """Return the texts of a large job, all fresh."""
        with self._lock:
            self._next += JOB
            return self.texts[self._next - JOB : self._next]

    def any(self) -> str:
        """Return a text that is asked about again and again."""
        return random.choice(self.common)


class Record:
    """What was asked and answered, what was wrong, how long it took, and the server's memory meanwhile."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port, self._process = port, psutil.Process(process.pid)
        self.kinds: Counter[str] = Counter()
        self.wrong: list[str] = []
        # The first answer to what the library is not asked here; every later one has to be the same.
        self.firsts: dict[str, bytes] = {}
        self.texts, self.begun = 0, time.monotonic()
        self._sizes: list[tuple[float, int, float]] = []
        self._lock = threading.Lock()

    def seconds(self) -> float:
        """Return how long it has lasted."""
        return time.monotonic() - self.begun

    def count(self, kind: str, problem: str | None, texts: int = 0) -> None:
        """Count a request of a kind, and what was wrong with its answer."""
        with self._lock:
            self.kinds[kind] += 1
            self.texts += texts
            if problem:
                self.wrong.append(f"{kind}: {problem}"[:300])
                say(self.wrong[-1])

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send a request on a connection of its own; return the answer's status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, content, {"Content-Type": "application/json"} if content else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Sample the server's resident size every second."""
        stop = threading.Event()

        def sample() -> None:
            while not stop.wait(1):
                self._sizes.append((self.seconds(), sum(self.kinds.values()), self._process.memory_info().rss / 2**20))

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def memory_report(self) -> dict[str, Any]:
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


class Visitor:
    """A client that knows the right answers."""

    def __init__(self, record: Record, known: Known, seed: int) -> None:
        self.record, self.known, self.random = record, known, random.Random(seed)

    def first(self) -> None:
        """Ask once, while nothing else runs, for what is compared later."""
        for path, body in (
            ("/v1/info", None),
            ("/v1/synonyms", {"labels": LABELS}),
            ("/v1/synonyms", {"labels": ["music", "food"]}),
            *(("/v1/retrieve", {"text": text, "k": 4}) for text in self.known.common[:20]),
        ):
            status, answer = self.record.ask("POST" if body else "GET", path, body)
            self.record.firsts[path + json.dumps(body)] = answer
            self.record.count("first", None if status == 200 else f"{path}: {status} {answer[:100]!r}")

    def short(self, text: str) -> float:
        """Ask about one text, and return the milliseconds until its answer."""
        start = time.perf_counter()
        status, answer = self.record.ask("POST", "/v1/classify", {"text": text})
        taken = 1000 * (time.perf_counter() - start)
        self.record.count("one text", self.check(status, answer, [text], self.known.right), 1)
        return taken

    def check(
        self, status: int, answer: bytes, texts: list[str], right: dict[str, dict[str, float]], top: int | None = None
    ) -> str | None:
        """Return what is wrong with an answer."""
        if status != 200:
            return f"{status} {answer[:200]!r}"
        return compare(lambda: json.loads(answer)["results"], texts, right, top)

    def stream(self, texts: list[str], kind: str) -> None:
        """Ask about texts in a stream: every line once."""
        status, answer = self.record.ask("POST", "/v1/classify", {"texts": texts, "stream": True})

        def in_order() -> list[Any]:
            return sorted((json.loads(line) for line in answer.splitlines()), key=lambda line: line["index"])

        wrong = compare(in_order, texts, self.known.right) if status == 200 else f"{status} {answer[:200]!r}"
        self.record.count(kind, wrong, len(texts))

    def anything(self) -> None:
        """Ask one thing of all that clients ask."""
        kinds, weights = zip(*self.KINDS, strict=True)
        self.random.choices(kinds, weights)[0](self)

    def _one(self) -> None:
        text, changes = self.known.any(), self.random.choice([{}, {"top": 1}, {"explain": True}, {"seed": 3}])
        status, answer = self.record.ask("POST", "/v1/classify", {"text": text, **changes})
        self.record.count("one text", self.check(status, answer, [text], self.known.right, changes.get("top")), 1)

    def _other_labels(self) -> None:
        labels, right = self.random.choice(self.known.others)
        texts = self.random.sample(list(right), self.random.randint(1, 3))
        status, answer = self.record.ask("POST", "/v1/classify", {"texts": texts, "labels": labels})
        self.record.count("other labels", self.check(status, answer, texts, right), len(texts))

    def _batch(self) -> None:
        texts = self.random.sample(self.known.common, self.random.randint(2, 8))
        status, answer = self.record.ask("POST", "/v1/classify", {"texts": texts})
        self.record.count("small batch", self.check(status, answer, texts, self.known.right), len(texts))

    def _streamed(self) -> None:
        self.stream(self.random.sample(self.known.common, 64), "job of 64")

    def _same_as_first(self) -> None:
        key = self.random.choice(list(self.record.firsts))
        path, brace, rest = key.partition("{")
        body = json.loads(brace + rest) if brace else None
        path = path.removesuffix("null")
        status, answer = self.record.ask("POST" if body else "GET", path, body)
        same = status == 200 and answer == self.record.firsts[key]
        self.record.count(path, None if same else f"{status}, another answer than before: {answer[:100]!r}")

    def _health(self) -> None:
        path = self.random.choice(["/healthz", "/readyz", "/metrics", "/"])
        status, _ = self.record.ask(self.random.choice(["GET", "HEAD"]), path)
        self.record.count("health", None if status == 200 else f"{path}: {status}")

    def _nonsense(self) -> None:
        """Send what has to be refused, with a problem document that says why."""
        method, path, body, wanted = self.random.choice(
            [
                ("POST", "/v1/classify", b'{"text": "x",,}', 400),
                ("POST", "/v1/classify", self.random.randbytes(300), 400),
                ("POST", "/v1/classify", b"[" * 50_000, 400),
                ("POST", "/v1/classify", b'{"\\ud800": 1}', 422),
                ("POST", "/v1/classify", {"text": "x", "colour": 1}, 422),
                ("POST", "/v1/classify", {"text": "x" * 20_000}, 422),
                ("POST", "/v1/classify", {"texts": ["x"] * (JOB + 1)}, 422),
                ("POST", "/v1/classify", b"x" * (5 << 20), 413),
                ("POST", "/v1/classify", {"text": "x", "labels": ["a"]}, 422),
                ("GET", "/v1/nothing", None, 404),
                ("DELETE", "/v1/info", None, 405),
                ("GET", "/v1/paragraph/123456789", None, 404),
            ]
        )
        status, answer = self.record.ask(method, path, body)
        # Random bytes are no JSON, but may be taken for another encoding of it.
        right = status == wanted or (isinstance(body, bytes) and status in (400, 422) and wanted == 400)
        explained = right and json.loads(answer).get("detail")
        self.record.count("nonsense", None if explained else f"{path} {body!r:.60}: {status} {answer[:100]!r}")

    def _leaves(self) -> None:
        """Leave in the middle of a request or of its answer, or send no HTTP at all."""
        content = json.dumps({"texts": self.random.sample(self.known.texts, 64), "stream": True}).encode()
        head = f"POST /v1/classify HTTP/1.1\r\nHost: 127.0.0.1:{self.record.port}\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
        with socket.create_connection(("127.0.0.1", self.record.port), timeout=600) as client:
            where = self.random.choice(["head", "body", "answer", "answer", "no http"])
            wrong = None
            if where == "no http":
                client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
                wrong = None if b"application/problem+json" in client.recv(4000) else "no problem document"
            else:
                client.sendall(request[: {"head": 40, "body": len(request) // 2}.get(where, len(request))])
                if where == "answer":
                    client.recv(200)
        self.record.count(f"leaves: {where}", wrong)

    KINDS = (
        (_one, 50),
        (_other_labels, 10),
        (_batch, 12),
        (_streamed, 2),
        (_same_as_first, 10),
        (_health, 6),
        (_nonsense, 6),
        (_leaves, 4),
    )


def compare(
    results: Callable[[], list[Any]], texts: list[str], right: dict[str, dict[str, float]], top: int | None = None
) -> str | None:
    """Return what is wrong with results, which ``results`` reads: a probability for every label, or for ``top``."""
    try:
        found = results()
        if (order := [each["index"] for each in found]) != list(range(len(texts))):
            return f"lost or doubled: {len(found)} of {len(texts)}, {order[:5]} …"
        for each, text in zip(found, texts, strict=True):
            given, wanted = each["probabilities"], right[text]
            likeliest = dict(sorted(wanted.items(), key=lambda item: -item[1])[:top])
            pairs = [(given[name], wanted[name]) for name in given]
            # Labels that are as likely may stand for each other.
            pairs += zip(sorted(given.values()), sorted(likeliest.values()), strict=False)
            # Not a number is not close to anything.
            close = all(abs(one - other) <= TOLERANCE for one, other in pairs)
            if len(given) != len(likeliest) or not close:
                return f"{given} instead of {wanted}"
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return f"no results that can be read: {type(error).__name__}: {error}"
    return None


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


def everything(record: Record, known: Known, options: argparse.Namespace, end: float) -> None:
    """Let several clients ask everything until all requests are made."""

    def visit(number: int) -> None:
        visitor = Visitor(record, known, seed=number + 1)
        while sum(record.kinds.values()) < options.requests and time.monotonic() < end:
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


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


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
