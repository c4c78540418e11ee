"""An index searched by several workers, each in its share of the vectors, and their answers merged.

Of an exact index that is what one search of all vectors finds, to the last digit. Of the others every share is
searched as far as the whole would be, so that no less is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.exceptions import RayError

from zicl.apps.cluster.failure import own_error
from zicl.apps.cluster.searcher import SameVectors, Searcher
from zicl.exceptions import ClusterError
from zicl.retrieve.effort import Effort
from zicl.retrieve.index import Index
from zicl.retrieve.search import Found, Selection, merged

# A searcher that died is started again elsewhere; for so long a search waits for it.
_SECONDS = 600.0


class Searchers:
    """The workers that search an index together."""

    def __init__(self, workers: Sequence[Any]) -> None:
        self._workers = workers

    def nearest(self, query: NDArray[np.float32], count: int, only: Selection | None, effort: Effort) -> Found:
        """The nearest of all shares."""
        if only is not None and only.bits is None:
            raise ClusterError("a search elsewhere is confined by marks, not by a range")
        asked = ray.put((query, count, None if only is None else only.bits, effort))
        try:
            found = ray.get([worker.search.remote(asked) for worker in self._workers], timeout=_SECONDS)
        except RayError as error:
            raise own_error(error) from error
        return merged(found, count)


def searchers(index: Index, count: int) -> Searchers:
    """Start so many workers on an index, whose file all machines see; Ray replaces one that dies.

    They ask for no core of their own: while they search, those that asked them wait.
    """
    count = min(count, index.manifest["vectors"])
    bounds = np.linspace(0, index.manifest["vectors"], count + 1).astype(int).tolist()
    actor: Any = ray.remote(Searcher).options(
        num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
    )
    read = SameVectors.of(index)
    return Searchers([actor.remote(read, first, last) for first, last in pairwise(bounds)])
