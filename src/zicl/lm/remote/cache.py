"""Answers of servers on disk, found by the hash of the request: a run that is resumed asks nothing twice.

One SQLite file, because several processes may write and a power cut must not corrupt it. It holds hashes and numbers,
and no text.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock

from zicl._util.failures import storage_errors
from zicl.exceptions import StorageError
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs

# The answer to the probe may differ by this much between runs of the same model: servers are not exact.
_TOLERANCE = 0.01
# SQLite limits the number of values in a statement.
_MAX_VALUES = 500
_TABLES = """
create table if not exists answers (key blob primary key, numbers text not null) without rowid;
create table if not exists models (id integer primary key, who text not null, probe text not null);
"""


class ScoreCache:
    """The cached answers of one model; ``model_key`` names server, model, tokenizer and backend."""

    def __init__(self, path: Path, model_key: str, probe: Sequence[float]) -> None:
        self._path, self._lock = path, Lock()
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._errors():
            # Autocommit: an answer is stored as soon as it arrives.
            self._file = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            self._file.execute("pragma journal_mode=wal")
            self._file.execute("pragma synchronous=normal")
            self._file.executescript(_TABLES)
            self._space = f"{model_key}|{self._generation(model_key, probe)}"

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def find(self, requests: Iterable[ScoreRequest]) -> dict[ScoreRequest, TokenLogprobs]:
        """Return the answers that are cached."""
        answers: dict[ScoreRequest, TokenLogprobs] = {}
        with self._lock, self._errors():
            by_key = {self._key(request): request for request in requests}
            for start in range(0, len(by_key), _MAX_VALUES):
                chunk = dict(islice(by_key.items(), start, start + _MAX_VALUES))
                marks = ",".join("?" * len(chunk))
                rows = self._file.execute(f"select key, numbers from answers where key in ({marks})", list(chunk))
                answers |= {chunk[key]: tuple(json.loads(numbers)) for key, numbers in rows}
        return answers

    def store(self, request: ScoreRequest, logprobs: TokenLogprobs) -> None:
        """Store an answer."""
        with self._lock, self._errors():
            row = (self._key(request), json.dumps(logprobs))
            self._file.execute("insert or replace into answers values (?, ?)", row)

    def _key(self, request: ScoreRequest) -> bytes:
        parts = [(part.text, part.tokens) for part in (request.given, request.targets)]
        return hashlib.sha256(json.dumps([self._space, parts, request.next_token]).encode()).digest()

    def _generation(self, model_key: str, probe: Sequence[float]) -> int:
        """Return a number for the model of this name: one that scores the probe differently is another model."""
        rows = self._file.execute("select id, probe from models where who = ?", (model_key,)).fetchall()
        for number, stored in rows:
            old = json.loads(stored)
            if len(old) == len(probe) and all(abs(a - b) < _TOLERANCE for a, b in zip(old, probe, strict=True)):
                return int(number)
        row = (model_key, json.dumps(list(probe)))
        return int(self._file.execute("insert into models (who, probe) values (?, ?)", row).lastrowid or 0)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(
                f"the cached answers in {self._path} cannot be used: {error}",
                hint="free some space, or remove that file: its answers are then requested again",
            ) from error
