"""Stages of Ray Data that draw nothing over the command's own progress, and whose errors are told in our words."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from zicl.apps.cluster.connect import Cluster, WorkerSetup, cluster_error, model_path
from zicl.corpus.splitter import SplitMany, get_splitter, split_locally
from zicl.corpus.store import Corpus
from zicl.exceptions import ClusterError
from zicl.retrieve.builder import EmbedShards, embed_shard
from zicl.retrieve.encoder import Encoder, load_encoder

_SETTINGS: Mapping[str, Any] = {
    "enable_progress_bars": False,
    # Ray's own wrapper is sent without what it wraps.
    "raise_original_map_exception": True,
    # A large piece on a slow machine, or a wait for room, is no reason to end.
    "execution_no_progress_timeout_s": -1,
    # A piece comes back as one block, whatever its size.
    "target_max_block_size": 1 << 60,
}


@contextmanager
def stage() -> Iterator[None]:
    """Around making a data set and reading its results, which come in any order."""
    from ray.data import DataContext
    from ray.exceptions import RayError

    context, log = DataContext.get_current(), logging.getLogger("ray.data")
    before, level = {name: getattr(context, name) for name in _SETTINGS if hasattr(context, name)}, log.level
    _set(context, {name: _SETTINGS[name] for name in before})
    log.setLevel(logging.ERROR)
    try:
        yield
    except RayError as error:
        raise cluster_error(error) from error
    finally:
        _set(context, before)
        log.setLevel(level)


def _set(context: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(context, name, value)


# -- Texts in pieces that are worth a task each.


# A task takes so much text; a window of so many tasks is read ahead, which is what the driver holds of the text.
TASK_CHARACTERS, _WINDOW = 1 << 20, 64


def windows(texts: Iterable[str], characters: int = TASK_CHARACTERS, tasks: int = _WINDOW) -> Iterator[list[list[str]]]:
    """Texts in groups of at least so many characters, and so many groups to a window.

    >>> list(windows(["aa", "b", "c", "dd"], characters=2, tasks=2))
    [[['aa'], ['b', 'c']], [['dd']]]
    """
    window: list[list[str]] = []
    length = characters
    for text in texts:
        if length >= characters:
            if len(window) == tasks:
                yield window
                window = []
            window.append([])
            length = 0
        window[-1].append(text)
        length += len(text)
    if window:
        yield window


# -- Splitting text into sentences as a stage of Ray Data.


def split_on(cluster: Cluster, splitter: str, *, offline: bool = False, characters: int = TASK_CHARACTERS) -> SplitMany:
    """Splits blocks on a cluster, so many characters a task; the order stays that of the text."""
    # Text for one task only is split here: a folder of many small files is not worth a task each.
    here, conditions = split_locally(get_splitter(splitter)), WorkerSetup(1, offline)

    def split(texts: Iterable[str]) -> Iterator[list[list[str]]]:
        for window in windows(texts, characters):
            if len(window) == 1:
                yield from here(window[0])
            else:
                yield from _split_window(window, cluster, partial(_split, splitter, conditions))

    return split


def _split_window(window: list[list[str]], cluster: Cluster, task: partial[pa.Table]) -> Iterator[list[list[str]]]:
    import ray.data

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


def _split(splitter: str, conditions: WorkerSetup, batch: pa.Table) -> pa.Table:
    split = _splitter(splitter, conditions.offline, tuple(conditions.versions.items()))
    found = list(split(batch["text"].to_pylist()))
    kind = pa.large_list(pa.large_list(pa.large_string()))
    return _numbered(batch["group"][0].as_py(), "paragraphs", pa.array(found, kind))


@lru_cache(maxsize=1)
def _splitter(name: str, offline: bool, versions: tuple[tuple[str, str], ...]) -> SplitMany:
    """Made once a process, not once a task."""
    WorkerSetup(1, offline, dict(versions)).keep()
    return split_locally(get_splitter(name))


# -- Embedding a corpus as a stage of Ray Data, with workers that hold the encoder.


class Embedder:
    """Writes shards of vectors to the corpus' folder, which all machines see."""

    def __init__(self, corpus: str, encoder: str, identity: str, conditions: WorkerSetup) -> None:
        self._corpus, self._encoder, self._identity, self._conditions = corpus, encoder, identity, conditions

    @cached_property
    def _loaded(self) -> tuple[Corpus, Encoder]:
        """Loaded with the first shard, not when it is made: Ray tells only the errors of the work itself."""
        self._conditions.keep()
        encoder = load_encoder(self._encoder, offline=self._conditions.offline)
        if encoder.identity != self._identity:
            raise ClusterError(
                f"the encoder {self._encoder} is another one on a machine of the cluster",
                hint="the same models have to be on all of them",
            )
        return Corpus.open(self._corpus, verify=False), encoder

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Shards by the numbers they begin with, and the folder they go to."""
        corpus, encoder = self._loaded
        for start, folder in zip(batch["start"].tolist(), batch["folder"].tolist(), strict=True):
            embed_shard(corpus, encoder, corpus.indexed, start, Path(folder))
        return {"start": batch["start"]}


def embed_on(cluster: Cluster, corpus: Corpus, encoder: Encoder, *, offline: bool = False) -> EmbedShards:
    """Return a function that embeds a corpus on a cluster."""
    import ray.data

    def embed(starts: Sequence[int], folder: Path) -> Iterator[int]:
        if not starts:
            return
        items = [{"start": start, "folder": str(folder.resolve())} for start in starts]
        arguments = {
            "corpus": str(corpus.path.resolve()),
            "encoder": model_path(encoder.name),
            "identity": encoder.identity,
            "conditions": WorkerSetup(cluster.threads, offline),
        }
        with stage():
            shards = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
                Embedder,
                fn_constructor_kwargs=arguments,
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=min(cluster.workers, len(items))),
                num_cpus=cluster.threads,
                num_gpus=cluster.gpus or None,
            )
            for done, _ in enumerate(shards.iter_batches(batch_size=1), start=1):
                yield done

    return embed
