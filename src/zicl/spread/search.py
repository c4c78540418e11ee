"""An index searched by several workers, each in its share of the vectors, and their answers merged.

Of an exact index that is what one search of all vectors finds, to the last digit. Of the others every share is
searched as far as the whole would be, so that no less is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.exceptions import RayError, RayTaskError

from zicl.exceptions import ClusterError
from zicl.retrieve import vectors
from zicl.retrieve.build import FOLDER, VECTORS
from zicl.retrieve.effort import Effort
from zicl.retrieve.index import Index
from zicl.retrieve.search import Found, Selection, merged, search
from zicl.spread.threads import use_threads

_Asked = tuple[NDArray[np.float32], int, NDArray[np.uint8] | None, Effort]


class Searcher:
    """Searches the vectors between two numbers; of a mapped file only their pages are read."""

    def __init__(self, path: str, kind: str, first: int, last: int) -> None:
        use_threads(1)
        self._index = vectors.read(kind, Path(path))
        self._first, self._last = first, last

    def search(self, asked: _Asked) -> Found:
        """The nearest of its share."""
        query, count, bits, effort = asked
        only = Selection.between(self._first, self._last)
        if bits is not None:
            chosen = np.unpackbits(bits, count=self._index.ntotal, bitorder="little").astype(bool)
            chosen[: self._first] = chosen[self._last :] = False
            only = Selection.of(chosen)
        if only.count == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        return search(self._index, query, count, only, effort)


class Searchers:
    """The workers that search an index together."""

    def __init__(self, workers: Sequence[Any]) -> None:
        self._workers = workers

    def nearest(self, query: NDArray[np.float32], count: int, only: Selection | None, effort: Effort) -> Found:
        """The nearest of all shares."""
        asked = ray.put((query, count, None if only is None else only.bits, effort))
        try:
            found = ray.get([worker.search.remote(asked) for worker in self._workers])
        except RayTaskError as error:
            raise error.cause from None
        except RayError as error:
            raise ClusterError(f"a part of the index is no longer searched: {error}") from error
        return merged(found, count)


def searchers(index: Index, count: int) -> Searchers:
    """Start so many workers on an index, whose file all machines see; Ray replaces one that dies."""
    path, kind = str((index.corpus.path / FOLDER / VECTORS).resolve()), index.manifest["kind"]
    bounds = np.linspace(0, index.manifest["vectors"], count + 1).astype(int).tolist()
    actor: Any = ray.remote(Searcher).options(
        num_cpus=1, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
    )
    return Searchers([actor.remote(path, kind, first, last) for first, last in pairwise(bounds)])
