"""Asking the language model about the drawn texts, once each: what it said is on disk as soon as it is said."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zicl._util.files import text_hash
from zicl._util.progress import Report, silent
from zicl.classifier import ZICLClassifier
from zicl.exceptions import UsageError
from zicl.inputs.output import Output
from zicl.persistence import depends_on
from zicl.score.calibration import Scores

STAGE = "asking the language model"
_FILE = "answers.jsonl"
_CHUNK = 16


def ask(
    teacher: ZICLClassifier, texts: Sequence[str], work: Path, *, overwrite: bool = False, report: Report = silent
) -> Scores:
    """The language model's probabilities, one row a text and one column a label, in the labels' order.

    They are kept in ``work`` by the text's hash: a run that was killed, or one that asks about more texts, goes on
    with those that are missing. With ``overwrite``, answers under other settings are dropped, not an error.
    """
    target = _open(work / _FILE, depends_on(teacher), overwrite=overwrite)
    names = [_name(text) for text in texts]
    left = sum(name not in target.done for name in names)
    begun, done = time.monotonic(), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(STAGE, done, left, f"{done / max(time.monotonic() - begun, 1e-9):.2f} rows a second" if done else "")

    advance(0)
    # Counted from the first text: a resumed run forms the same groups.
    order = teacher.order(texts)
    for start in range(0, len(texts), _CHUNK):
        chunk = [n for n in order[start : start + _CHUNK] if names[n] not in target.done]
        if chunk:
            results = teacher.classify([texts[n] for n in chunk], advance)
            shares = [list(result.probabilities.values()) for result in results]
            target.write([{"id": names[n], "p": row} for n, row in zip(chunk, shares, strict=True)])
    return _read(target.path, names)


def _open(path: Path, settings: dict[str, Any], *, overwrite: bool) -> Output:
    try:
        return Output(path, settings, ["id", "p"])
    except UsageError:
        if not overwrite:
            raise
        return Output(path, settings, ["id", "p"], overwrite=True)


def _name(text: str) -> str:
    return f"{text_hash(text):016x}"


def _read(path: Path, names: Sequence[str]) -> Scores:
    with path.open(encoding="utf-8") as stream:
        known = {entry["id"]: entry["p"] for entry in map(json.loads, stream)}
    return np.array([known[name] for name in names], dtype=np.float64)
