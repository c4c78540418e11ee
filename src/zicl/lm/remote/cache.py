"""Answers on disk, found by what was asked: a run that goes on asks nothing twice.

One SQLite file, because several processes may write and a power cut must not tear it. It holds hashes and numbers,
no text.
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

from zicl._util.files import storage_errors
from zicl.exceptions import StorageError
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs

# How far the probe's numbers may lie from those of an earlier run of the same model: servers are not exact.
_SAME = 0.01
# SQLite takes a limited number of values in one statement.
_AT_ONCE = 500
_TABLES = """
create table if not exists answers (key blob primary key, numbers text not null) without rowid;
create table if not exists models (id integer primary key, who text not null, probe text not null);
"""


class ScoreCache:
    """The answers of one server and model."""

    def __init__(self, path: Path, who: str, probe: Sequence[float]) -> None:
        self._path, self._lock = path, Lock()
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._errors():
            # Autocommit: an answer is there for good as soon as it came.
            self._file = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            self._file.execute("pragma journal_mode=wal")
            self._file.execute("pragma synchronous=normal")
            self._file.executescript(_TABLES)
            self._space = f"{who}|{self._generation(who, probe)}"

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def find(self, questions: Iterable[ScoreRequest]) -> dict[ScoreRequest, TokenLogprobs]:
        """What is known already."""
        known: dict[ScoreRequest, TokenLogprobs] = {}
        with self._lock, self._errors():
            keys_of_all = {self._key(question): question for question in questions}
            for start in range(0, len(keys_of_all), _AT_ONCE):
                keys = dict(islice(keys_of_all.items(), start, start + _AT_ONCE))
                marks = ",".join("?" * len(keys))
                rows = self._file.execute(f"select key, numbers from answers where key in ({marks})", list(keys))
                known |= {keys[key]: tuple(json.loads(numbers)) for key, numbers in rows}
        return known

    def keep(self, question: ScoreRequest, numbers: TokenLogprobs) -> None:
        """Write an answer down."""
        with self._lock, self._errors():
            row = (self._key(question), json.dumps(numbers))
            self._file.execute("insert or replace into answers values (?, ?)", row)

    def _key(self, question: ScoreRequest) -> bytes:
        parts = [(part.text, part.tokens) for part in (question.given, question.wanted)]
        return hashlib.sha256(json.dumps([self._space, parts, question.following]).encode()).digest()

    def _generation(self, who: str, probe: Sequence[float]) -> int:
        """A number for the model behind a name: one that scores the probe otherwise is another model."""
        rows = self._file.execute("select id, probe from models where who = ?", (who,)).fetchall()
        for number, stored in rows:
            old = json.loads(stored)
            if len(old) == len(probe) and all(abs(a - b) < _SAME for a, b in zip(old, probe, strict=True)):
                return int(number)
        done = self._file.execute("insert into models (who, probe) values (?, ?)", (who, json.dumps(list(probe))))
        return int(done.lastrowid or 0)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(
                f"the remembered answers in {self._path} cannot be used: {error}",
                hint="free some space, or remove that file: what it holds is asked for again",
            ) from error
