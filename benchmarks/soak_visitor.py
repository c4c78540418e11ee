"""A client of benchmarks/soak.py, which asks a server all that clients ask and compares every answer."""

from __future__ import annotations

import http.client
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from soak_known import JOB, LABELS, Known, KnownFit, KnownMap

TOLERANCE = 1e-4
# A pile counts by the share of its texts on which two halves agree; coordinates have four digits.
WEIGHT_TOLERANCE = POINT_TOLERANCE = 1e-3
# Fits and maps that a server takes at once.
ADMITTED = 4


class Record:
    """What was asked and answered, and what was wrong."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.kinds: Counter[str] = Counter()
        self.wrong: list[str] = []
        # The first answer to what the library is not asked here; every later one has to be the same.
        self.firsts: dict[str, bytes] = {}
        # What the server calls each fit.
        self.fits: dict[KnownFit, str] = {}
        self.texts = 0
        self._lock = threading.Lock()

    @property
    def requests(self) -> int:
        """How many requests were made."""
        return sum(self.kinds.values())

    def count(self, kind: str, problem: str | None, texts: int = 0) -> None:
        """Count a request of a kind, and what was wrong with its answer."""
        with self._lock:
            self.kinds[kind] += 1
            self.texts += texts
        if problem:
            self.complain(kind, problem)

    def complain(self, kind: str, problem: str) -> None:
        """Note what is wrong."""
        with self._lock:
            self.wrong.append(f"{kind}: {problem}"[:300])
        say(f"{kind}: {problem}"[:300])

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Return the status and body of the answer to a request."""
        status, answer, _ = self.send(method, path, body)
        return status, answer

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, bytes, Mapping[str, str]]:
        """Send a request on a connection of its own; return the answer's status, body and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, content, {"Content-Type": "application/json"} if content else {})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()


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
                ("POST", "/v1/classify", {"text": "x", "fit": "0" * 32}, 404),
                ("POST", "/v1/fit", {"texts": ["x"] * (JOB + 1)}, 422),
                ("POST", "/v1/fit", {"texts": ["x"], "method": "naive"}, 422),
                ("POST", "/v1/map", {"texts": ["a", "b"]}, 422),
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

    def fit(self, fit: KnownFit) -> bool:
        """Let the server learn from a pile, and return whether it did; of too many at once it refuses some."""
        texts, stream = self.random.sample(fit.texts, len(fit.texts)), self.random.random() < 0.5
        body = {"texts": texts, "labels": fit.labels, "stream": stream}
        status, answer, headers = self.record.send("POST", "/v1/fit", body)
        if status == 503:
            self.record.count("fit refused", wrong_refusal(answer, headers))
            return False
        if status != 200:
            self.record.count("fit", f"{status} {answer[:200]!r}")
            return False
        self.record.count("fit", wrong_fit(answer, fit), len(texts))
        self.record.fits[fit] = json.loads(answer.splitlines()[-1]).get("fit", "")
        return True

    def _fit(self) -> None:
        fit = self.random.choice(self.known.fits)
        if self.fit(fit) and not self._classify_with(fit):
            self.record.complain("fit", "is gone at once")

    def _fitted(self) -> None:
        """Ask with what the server has learned; it keeps the last fits only."""
        fit = self.random.choice(self.known.fits)
        if fit not in self.record.fits or not self._classify_with(fit):
            self.fit(fit)

    def _classify_with(self, fit: KnownFit) -> bool:
        """Classify with a fit, and return whether the server still has it."""
        texts, top = (
            self.random.sample(list(fit.right), self.random.randint(1, 4)),
            self.random.choice([{}, {"top": 1}]),
        )
        body = {"texts": texts, "fit": self.record.fits[fit], **top}
        status, answer = self.record.ask("POST", "/v1/classify", body)
        if status == 404:
            explained = json.loads(answer).get("field") == "fit"
            self.record.count("fit not kept", None if explained else f"{answer[:200]!r}")
            return False
        self.record.count("with a fit", self.check(status, answer, texts, fit.right, top.get("top")), len(texts))
        return True

    def _map(self) -> None:
        known, stream = self.random.choice(self.known.maps), self.random.random() < 0.5
        status, answer, headers = self.record.send("POST", "/v1/map", {"texts": known.texts, "stream": stream})
        if status == 503:
            self.record.count("map refused", wrong_refusal(answer, headers))
            return
        wrong = wrong_map(answer, known) if status == 200 else f"{status} {answer[:200]!r}"
        self.record.count("map", wrong, len(known.texts))

    def _leaves(self) -> None:
        """Leave in the middle of a request or of its answer, or send no HTTP at all."""
        path = self.random.choice(["classify", "classify", "fit", "map"])
        body = {"texts": self.random.sample(self.known.texts, 64), "stream": True}
        content = json.dumps(body | ({"labels": LABELS} if path == "fit" else {})).encode()
        head = f"POST /v1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.record.port}\r\nContent-Type: application/json\r\n"
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
        self.record.count(f"leaves: {where}" if where == "no http" else f"leaves {path}: {where}", wrong)

    KINDS = (
        (_one, 50),
        (_other_labels, 10),
        (_batch, 12),
        (_streamed, 2),
        (_same_as_first, 10),
        (_health, 6),
        (_nonsense, 6),
        (_leaves, 6),
        (_fit, 3),
        (_fitted, 6),
        (_map, 2),
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


def wrong_fit(answer: bytes, fit: KnownFit) -> str | None:
    """Return what is wrong with the answer to a fit, the last line if it was a stream."""
    *progress, found = (json.loads(line) for line in answer.splitlines())
    if "settings" not in found:
        return f"{found}"
    if any(each.keys() != {"stage", "done", "total"} for each in progress):
        return f"{progress} is no progress"
    settings = found["settings"]
    if settings["pile"] != len(fit.texts) or [label["name"] for label in settings["labels"]] != fit.labels:
        return f"learned {settings['labels']} from {settings['pile']} of {len(fit.texts)} texts"
    if not abs(found["weight"] - fit.weight) <= WEIGHT_TOLERANCE:
        return f"a weight of {found['weight']} instead of {fit.weight}"
    return None


def wrong_map(answer: bytes, known: KnownMap) -> str | None:
    """Return what is wrong with the answer to a map, the last line if it was a stream."""
    found = json.loads(answer.splitlines()[-1])
    points = np.array(found.get("points", []))
    if points.shape != (len(known.texts), 2):
        return f"{points.shape} numbers for {len(known.texts)} texts: {found}"
    # Not a number is not close to anything.
    if not (away := np.abs(points - known.points).max()) <= POINT_TOLERANCE:
        return f"points are up to {away} away"
    return None if found["outlying"] == known.outlying else "other texts are outlying"


def wrong_refusal(answer: bytes, headers: Mapping[str, str]) -> str | None:
    """Return what is wrong with the refusal of a fit or a map that is one too many."""
    problem = json.loads(answer)
    busy = problem.get("type") == "urn:zicl:problem:busy" and problem.get("expected") == f"at most {ADMITTED} at once"
    return None if busy and headers.get("Retry-After", "").isdecimal() else f"{headers} {answer[:200]!r}"


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
