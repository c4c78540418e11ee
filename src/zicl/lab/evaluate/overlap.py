"""Measure how much of a test input is in the corpus verbatim: the longest common run of words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from zicl._util.files import read_json, write_json
from zicl._util.progress import ProgressReport, silent
from zicl.lab.evaluate.context import ExperimentContext

_WORD = re.compile(r"\w+")
# Runs are looked up by their first words, then compared word by word.
_KEY = 3


def overlaps(context: ExperimentContext, cache: Path) -> dict[tuple[str, str], int | None]:
    """Return the longest run of words that each example shares with the corpus, computed once and kept in ``cache``."""
    every = [(task, example) for task, examples in context.examples.items() for example in examples]
    if context.index is None:
        return {(task, example.id): None for task, example in every}
    known: dict[str, Any] = read_json(cache) if cache.is_file() else {}
    if known.get("corpus") != context.index.identity:
        known = {"corpus": context.index.identity, "tasks": {}}
    missing = [(t, e) for t, e in every if e.id not in known["tasks"].get(t, {})]
    if missing:
        corpus, texts = context.index.corpus, [str(example.text) for _, example in missing]
        lengths = longest_overlaps(texts, corpus.used_texts(), total=corpus.sentences, report=context.report)
        for (task, example), longest in zip(missing, lengths, strict=True):
            known["tasks"].setdefault(task, {})[example.id] = longest
        write_json(cache, known)
    return {(task, example.id): known["tasks"][task][example.id] for task, example in every}


def longest_overlaps(
    texts: Sequence[str], sentences: Iterable[str], *, total: int | None = None, report: ProgressReport = silent
) -> list[int]:
    """Return for each text the largest n such that n consecutive words of it are in one of the sentences.

    >>> longest_overlaps(["a cat sat down here", "no", "sat up"], ["The cat sat down.", "It sat."])
    [3, 0, 1]
    """
    inputs = [words_of(text) for text in texts]
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    shorter = {run for words in inputs for size in range(1, _KEY) for run in _runs(words, size)}
    for number, words in enumerate(inputs):
        for start, run in enumerate(_runs(words, _KEY)):
            places[run].append((number, start))
    best, seen = [0] * len(texts), set[tuple[str, ...]]()
    for count, sentence in enumerate(sentences):
        if count % 4096 == 0:
            report("comparing the inputs with the corpus", count, total)
        words = words_of(sentence)
        for size in range(1, _KEY):
            seen.update(shorter.intersection(_runs(words, size)))
        for start, run in enumerate(_runs(words, _KEY)):
            for number, place in places.get(run, ()):
                best[number] = max(best[number], _common_length(words, start, inputs[number], place))
    return [max(longest, _short_overlap(words, seen)) for longest, words in zip(best, inputs, strict=True)]


def words_of(text: str) -> list[str]:
    """Return the words in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def _runs(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[shift:] for shift in range(size)), strict=False))


def _common_length(words: Sequence[str], start: int, other: Sequence[str], place: int) -> int:
    length = _KEY
    while (
        start + length < len(words) and place + length < len(other) and words[start + length] == other[place + length]
    ):
        length += 1
    return length


def _short_overlap(words: Sequence[str], seen: set[tuple[str, ...]]) -> int:
    """Return the longest overlap among runs shorter than the lookup key."""
    return next((size for size in range(_KEY - 1, 0, -1) if not seen.isdisjoint(_runs(words, size))), 0)
