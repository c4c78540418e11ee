"""Embedding a corpus as a stage of Ray Data, with workers that hold the encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ray.data

from zicl.corpus.store import Corpus
from zicl.exceptions import ClusterError
from zicl.retrieve.build import EmbedShards, embed_shard
from zicl.retrieve.encoder import Encoder, load_encoder
from zicl.spread.cluster import Cluster
from zicl.spread.data import in_order
from zicl.spread.paths import model_path
from zicl.spread.threads import use_threads


class Embedder:
    """Writes shards of vectors to the corpus' folder, which all machines see."""

    def __init__(self, corpus: str, encoder: str, identity: str, threads: int, *, offline: bool) -> None:
        use_threads(threads)
        self._corpus, self._encoder = Corpus.open(corpus, verify=False), load_encoder(encoder, offline=offline)
        if self._encoder.identity != identity:
            raise ClusterError(
                f"the encoder {encoder} is another one on this machine of the cluster",
                hint="the same models have to be on all of them",
            )

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Shards by the numbers they begin with, and the folder they go to."""
        for start, folder in zip(batch["start"].tolist(), batch["folder"].tolist(), strict=True):
            embed_shard(self._corpus, self._encoder, self._corpus.indexed, start, Path(folder))
        return {"start": batch["start"]}


def embed_on(cluster: Cluster, corpus: Corpus, encoder: Encoder, *, offline: bool = False) -> EmbedShards:
    """Embeds a corpus on a cluster."""

    def embed(starts: Sequence[int], folder: Path) -> Iterator[int]:
        if not starts:
            return
        items = [{"start": start, "folder": str(folder.resolve())} for start in starts]
        stage = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            Embedder,
            fn_constructor_kwargs={
                "corpus": str(corpus.path.resolve()),
                "encoder": model_path(encoder.name),
                "identity": encoder.identity,
                "threads": cluster.threads,
                "offline": offline,
            },
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(cluster.workers, len(items))),
            num_cpus=cluster.threads,
            num_gpus=cluster.gpus or None,
            scheduling_strategy="SPREAD",
        )
        with in_order():
            for done, _ in enumerate(stage.iter_batches(batch_size=1), start=1):
                yield done

    return embed
