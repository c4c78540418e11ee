"""Which effort a search of an index needs: measured against exact search with the corpus's own sentences, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl._util.files import read_json, storage_errors, write_json
from zicl._util.progress import Report, silent
from zicl._util.random import rng
from zicl.exceptions import ConfigError, StorageError
from zicl.retrieve import compressed, exact
from zicl.retrieve import kinds as vectors
from zicl.retrieve.builder import FOLDER, MANIFEST, VECTORS
from zicl.retrieve.compressed import COMPRESSED, STORED
from zicl.retrieve.index import FIRST_FETCH, Index
from zicl.retrieve.measure import RECALL_AT, Measured, Questions, measure

_BLOCK = 1 << 16
# Sentences may be equally near, to the last digits: any of them is a right answer.
_TIES, _EQUAL = 128, 1e-6


@dataclass(frozen=True)
class Tuning:
    """What was measured, and the fastest way to search the index as it is that reaches the target."""

    kind: str
    vectors: int
    queries: int
    target: float
    measured: list[Measured]

    @property
    def pick(self) -> Measured | None:
        """The fastest of the index's own kind over the target, if any is."""
        return _fastest([each for each in self.measured if each.kind == self.kind], self.target)

    @property
    def better(self) -> Measured | None:
        """The fastest over the target, where it is of another kind."""
        best = _fastest(self.measured, self.target)
        return best if best is not None and best.kind != self.kind else None


def tune(
    path: str | Path,
    *,
    target: float = 0.95,
    kinds: Sequence[str] = (),
    queries: int = 200,
    seed: int = 0,
    report: Report = silent,
) -> Tuning:
    """Measure the index of a corpus, and other ``kinds`` built for the purpose; the pick is kept in its manifest."""
    if not 0 < target <= 1:
        raise ConfigError(f"a recall of {target} cannot be reached", hint="between 0 and 1, such as 0.95")
    if queries < 1:
        raise ConfigError(f"{queries} queries tell nothing", hint="at least 1, such as 200")
    index = Index.open(path)
    own, others = index.manifest["kind"], [vectors.choose(vectors.named(kind), len(index.indexed())) for kind in kinds]
    whole = vectors.read_back(own, index.corpus.path / FOLDER / VECTORS)
    report("searching exactly", 0, None, f"{whole.ntotal:,} vectors")
    questions = _questions(index, whole, queries, seed)
    report("measuring", 0, None, own)
    found = measure(own, index.corpus.path / FOLDER / VECTORS, questions, target)
    for kind in dict.fromkeys(other for other in others if other != own):
        report(f"measuring {kind}", 0, None, "built for the purpose")
        with storage_errors(index.corpus.path), TemporaryDirectory(dir=index.corpus.path, prefix=".tune-") as scratch:
            _build(kind, whole, Path(scratch))
            found += measure(kind, Path(scratch) / VECTORS, questions, target)
    tuning = Tuning(own, int(whole.ntotal), len(questions.queries), target, found)
    if tuning.pick is not None:
        _keep(index, tuning.pick)
    return tuning


def _questions(index: Index, whole: Any, queries: int, seed: int) -> Questions:
    """A sample of the vectors that are in use, and the nearest others of each."""
    used = np.sort(index.numbers())
    if len(used) < 2:
        raise ConfigError("one vector has no neighbours to be found", hint="an index with more sentences")
    own = np.sort(rng(seed, "tune").choice(used, min(queries, len(used)), replace=False))
    asked = whole.reconstruct_batch(own)
    truth = [
        _neighbours(near[near != number], similarities[near != number])
        for number, near, similarities in zip(own, *exact.nearest(whole, asked, _TIES, used), strict=True)
    ]
    chosen = None if index.corpus.part.whole else np.isin(np.arange(whole.ntotal), used)
    return Questions(asked, own, truth, FIRST_FETCH, chosen)


def _neighbours(near: NDArray[np.int64], similarities: NDArray[np.float32]) -> NDArray[np.int64]:
    """The first sixteen, and those that are as near as the last of them."""
    last = similarities[:RECALL_AT][-1]
    right: NDArray[np.int64] = near[similarities >= last - _EQUAL]
    return right


def _build(kind: str, whole: Any, folder: Path) -> None:
    """An index of another kind of the same vectors."""
    count, dimension, take = int(whole.ntotal), int(whole.d), whole.reconstruct_batch
    parts = (take(np.arange(start, min(start + _BLOCK, count))) for start in range(0, count, _BLOCK))
    if kind in COMPRESSED:
        stored = compressed.store(dimension, count, parts, folder / STORED)
        compressed.write(kind, dimension, count, stored, folder / "work", folder / VECTORS)
        return
    wanted = vectors.training_numbers(kind, count)
    sample = take(wanted) if len(wanted) else np.empty((0, dimension), dtype=np.float32)
    vectors.write(kind, dimension, parts, sample, count, folder / VECTORS)


def _keep(index: Index, pick: Measured) -> None:
    """Write the pick into the manifest; searches of the index use it from now on."""
    path = index.corpus.path / FOLDER / MANIFEST
    if read_json(path) != index.manifest:
        raise StorageError(f"{index.corpus.path} was changed by another process meanwhile", hint="run it again")
    kept = pick.effort.kept(index.manifest)
    if kept != index.manifest:
        write_json(path, kept)


def _fastest(measured: Sequence[Measured], target: float) -> Measured | None:
    return min((each for each in measured if each.recall >= target), key=lambda each: each.milliseconds, default=None)
