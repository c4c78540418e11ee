"""Splitting text into sentences as a stage of Ray Data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

import pyarrow as pa
import ray.data

from zicl.apps.cluster.connect import Cluster
from zicl.apps.cluster.ray_data import stage
from zicl.apps.cluster.windows import TASK_CHARACTERS, windows
from zicl.apps.cluster.worker import Conditions
from zicl.corpus.paragraphs import SplitMany, in_turn
from zicl.corpus.splitter import get_splitter
from zicl.exceptions import ClusterError


def split_on(cluster: Cluster, splitter: str, *, offline: bool = False, characters: int = TASK_CHARACTERS) -> SplitMany:
    """Splits blocks on a cluster, so many characters a task; the order stays that of the text."""
    # Text for one task only is split here: a folder of many small files is not worth a task each.
    here, conditions = in_turn(get_splitter(splitter)), Conditions(1, offline)

    def split(texts: Iterable[str]) -> Iterator[list[list[str]]]:
        for window in windows(texts, characters):
            if len(window) == 1:
                yield from here(window[0])
            else:
                yield from _split_window(window, cluster, partial(_split, splitter, conditions))

    return split


def _split_window(window: list[list[str]], cluster: Cluster, task: partial[pa.Table]) -> Iterator[list[list[str]]]:
    tables = [_numbered(number, "text", pa.array(group, pa.large_string())) for number, group in enumerate(window)]
    early: dict[int, list[list[list[str]]]] = {}
    due = 0
    with stage():
        tasks = ray.data.from_arrow(tables).map_batches(
            task,
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=1,
            concurrency=cluster.workers * cluster.threads,
        )
        # A group is a block of its own, and blocks come as they are done.
        for batch in tasks.iter_batches(batch_size=None, batch_format="pyarrow"):
            early[batch["group"][0].as_py()] = batch["paragraphs"].to_pylist()
            while due in early:
                yield from early.pop(due)
                due += 1
    if due != len(window):
        raise ClusterError(
            f"{len(window) - due} of {len(window)} pieces of text did not come back whole",
            hint="split without --on, and see the cluster's own logs",
        )


def _numbered(number: int, name: str, values: pa.Array) -> pa.Table:
    return pa.table({"group": pa.array([number] * len(values), pa.int32()), name: values})


def _split(splitter: str, conditions: Conditions, batch: pa.Table) -> pa.Table:
    split = _splitter(splitter, conditions.offline, tuple(conditions.versions.items()))
    found = list(split(batch["text"].to_pylist()))
    kind = pa.large_list(pa.large_list(pa.large_string()))
    return _numbered(batch["group"][0].as_py(), "paragraphs", pa.array(found, kind))


@lru_cache(maxsize=1)
def _splitter(name: str, offline: bool, versions: tuple[tuple[str, str], ...]) -> SplitMany:
    """Made once a process, not once a task."""
    Conditions(1, offline, dict(versions)).keep()
    return in_turn(get_splitter(name))
