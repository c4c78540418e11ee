"""Embedding a corpus as a stage of Ray Data, with workers that hold the encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import ray.data

from zicl.apps.cluster.connect import Cluster
from zicl.apps.cluster.paths import model_path
from zicl.apps.cluster.ray_data import stage
from zicl.apps.cluster.worker import Conditions
from zicl.corpus.store import Corpus
from zicl.exceptions import ClusterError
from zicl.retrieve.builder import EmbedShards, embed_shard
from zicl.retrieve.encoder import Encoder, load_encoder


class Embedder:
    """Writes shards of vectors to the corpus' folder, which all machines see."""

    def __init__(self, corpus: str, encoder: str, identity: str, conditions: Conditions) -> None:
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
    """Embeds a corpus on a cluster."""

    def embed(starts: Sequence[int], folder: Path) -> Iterator[int]:
        if not starts:
            return
        items = [{"start": start, "folder": str(folder.resolve())} for start in starts]
        arguments = {
            "corpus": str(corpus.path.resolve()),
            "encoder": model_path(encoder.name),
            "identity": encoder.identity,
            "conditions": Conditions(cluster.threads, offline),
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
