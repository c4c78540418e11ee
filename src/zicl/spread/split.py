"""Splitting text into sentences as a stage of Ray Data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

import pyarrow as pa
import ray.data

from zicl.corpus.paragraphs import SplitMany, paragraphs
from zicl.corpus.split import Splitter, get_splitter
from zicl.spread.cluster import Cluster
from zicl.spread.data import in_order
from zicl.spread.windows import windows


def split_on(cluster: Cluster, splitter: str) -> SplitMany:
    """Splits blocks on a cluster; the order stays that of the text, whatever becomes of a worker."""

    def split(texts: Iterable[str]) -> Iterator[list[list[str]]]:
        for window in windows(texts):
            tables = [pa.table({"text": pa.array(group, pa.large_string())}) for group in window]
            stage = ray.data.from_arrow(tables).map_batches(
                partial(_split, splitter),
                batch_size=None,
                batch_format="pyarrow",
                num_cpus=1,
                concurrency=cluster.workers * cluster.threads,
            )
            with in_order():
                for batch in stage.iter_batches(batch_size=None, batch_format="pyarrow"):
                    yield from batch["paragraphs"].to_pylist()

    return split


def _split(splitter: str, batch: pa.Table) -> pa.Table:
    split = _splitter(splitter)
    found = [list(paragraphs(text, split)) for text in batch["text"].to_pylist()]
    return pa.table({"paragraphs": pa.array(found, pa.large_list(pa.large_list(pa.large_string())))})


@lru_cache(maxsize=1)
def _splitter(name: str) -> Splitter:
    """Made once a process, not once a task."""
    return get_splitter(name)
