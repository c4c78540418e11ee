"""Split text and embed a corpus with Ray Data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from zicl.apps.cluster.connect import Cluster, cluster_error
from zicl.apps.cluster.worker import WorkerSetup, model_path
from zicl.corpus.splitter import SplitMany, get_splitter, split_locally
from zicl.corpus.store import Corpus
from zicl.exceptions import ClusterError
from zicl.retrieve.builder import EmbedShards, embed_shard
from zicl.retrieve.encoder import Encoder, load_encoder

_SETTINGS: Mapping[str, Any] = {
    # They would draw over those of the command.
    "enable_progress_bars": False,
    # Ray's wrapper is sent without the exception in it.
    "raise_original_map_exception": True,
    # A large group of texts on a slow machine, or a wait for free cores, is no failure.
    "execution_no_progress_timeout_s": -1,
    # The result of a task comes back as one block, whatever its size.
    "target_max_block_size": 1 << 60,
}
# Characters of text per task, and tasks per window; the command reads one window ahead.
TASK_CHARACTERS, _WINDOW_TASKS = 1 << 20, 64


@contextmanager
def _ray_data() -> Iterator[None]:
    """Apply the settings while a data set is made and read, and translate its errors."""
    from ray.data import DataContext
    from ray.exceptions import RayError

    context, log = DataContext.get_current(), logging.getLogger("ray.data")
    before, level = {name: getattr(context, name) for name in _SETTINGS if hasattr(context, name)}, log.level
    for name in before:
        setattr(context, name, _SETTINGS[name])
    log.setLevel(logging.ERROR)
    try:
        yield
    except RayError as error:
        raise cluster_error(error) from error
    finally:
        for name, value in before.items():
            setattr(context, name, value)
        log.setLevel(level)


def windows(
    texts: Iterable[str], characters: int = TASK_CHARACTERS, tasks: int = _WINDOW_TASKS
) -> Iterator[list[list[str]]]:
    """Yield windows of up to ``tasks`` groups of texts; a group has at least ``characters`` characters.

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


def split_on(cluster: Cluster, splitter: str, *, offline: bool = False, characters: int = TASK_CHARACTERS) -> SplitMany:
    """Return a function that splits texts on a cluster, ``characters`` per task, and yields them in order."""
    split_here, setup = split_locally(get_splitter(splitter)), WorkerSetup(1, offline)

    def split(texts: Iterable[str]) -> Iterator[list[list[str]]]:
        for window in windows(texts, characters):
            # A folder of many small files is not worth a task per file.
            if len(window) == 1:
                yield from split_here(window[0])
            else:
                yield from _split_window(window, cluster, partial(_split_group, splitter, setup))

    return split


def _split_window(window: list[list[str]], cluster: Cluster, task: partial[pa.Table]) -> Iterator[list[list[str]]]:
    import ray.data

    tables = [_numbered(number, "text", pa.array(group, pa.large_string())) for number, group in enumerate(window)]
    early: dict[int, list[list[list[str]]]] = {}
    due = 0
    with _ray_data():
        tasks = ray.data.from_arrow(tables).map_batches(
            task,
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=1,
            concurrency=cluster.workers * cluster.threads,
        )
        # Each group is one block, and blocks arrive in the order in which they are done.
        for batch in tasks.iter_batches(batch_size=None, batch_format="pyarrow"):
            early[batch["group"][0].as_py()] = batch["paragraphs"].to_pylist()
            while due in early:
                yield from early.pop(due)
                due += 1
    if due != len(window):
        raise ClusterError(
            f"{len(window) - due} of {len(window)} groups of texts did not come back",
            hint="split without --on, and see the logs of the cluster",
        )


def _numbered(number: int, name: str, values: pa.Array) -> pa.Table:
    return pa.table({"group": pa.array([number] * len(values), pa.int32()), name: values})


def _split_group(splitter: str, setup: WorkerSetup, batch: pa.Table) -> pa.Table:
    """Split the texts of one group, in a worker process."""
    split = _worker_splitter(splitter, setup.offline, tuple(setup.versions.items()))
    paragraphs = list(split(batch["text"].to_pylist()))
    kind = pa.large_list(pa.large_list(pa.large_string()))
    return _numbered(batch["group"][0].as_py(), "paragraphs", pa.array(paragraphs, kind))


@lru_cache(maxsize=1)
def _worker_splitter(name: str, offline: bool, versions: tuple[tuple[str, str], ...]) -> SplitMany:
    """Set up a process and load its splitter, once per process and not per task."""
    WorkerSetup(1, offline, dict(versions)).apply()
    return split_locally(get_splitter(name))


class EmbedWorker:
    """Write shards of vectors to the corpus' folder, which all machines see."""

    def __init__(self, corpus: str, encoder: str, identity: str, setup: WorkerSetup) -> None:
        self._corpus, self._encoder, self._identity, self._setup = corpus, encoder, identity, setup

    @cached_property
    def _loaded(self) -> tuple[Corpus, Encoder]:
        # Loaded with the first shard: Ray does not report the errors of a constructor.
        self._setup.apply()
        encoder = load_encoder(self._encoder, offline=self._setup.offline)
        if encoder.identity != self._identity:
            raise ClusterError(
                f"the encoder {self._encoder} is another one on a machine of the cluster",
                hint="put the same models on all machines",
            )
        return Corpus.open(self._corpus, verify=False), encoder

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Write the shards of a batch: their first rows, and the folder to write to."""
        corpus, encoder = self._loaded
        for start, folder in zip(batch["start"].tolist(), batch["folder"].tolist(), strict=True):
            embed_shard(corpus, encoder, corpus.indexed, start, Path(folder))
        return {"start": batch["start"]}


def embed_on(cluster: Cluster, corpus: Corpus, encoder: Encoder, *, offline: bool = False) -> EmbedShards:
    """Return a function that embeds shards of a corpus on a cluster."""
    import ray.data

    def embed(starts: Sequence[int], folder: Path) -> Iterator[int]:
        if not starts:
            return
        items = [{"start": start, "folder": str(folder.resolve())} for start in starts]
        arguments = {
            "corpus": str(corpus.path.resolve()),
            "encoder": model_path(encoder.name),
            "identity": encoder.identity,
            "setup": WorkerSetup(cluster.threads, offline),
        }
        with _ray_data():
            shards = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
                EmbedWorker,
                fn_constructor_kwargs=arguments,
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=min(cluster.workers, len(items))),
                num_cpus=cluster.threads,
                num_gpus=cluster.gpus or None,
            )
            for done, _ in enumerate(shards.iter_batches(batch_size=1), start=1):
                yield done

    return embed
