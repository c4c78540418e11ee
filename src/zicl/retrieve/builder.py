"""Embed the sentences of a corpus in shards and build the index over them; a killed run resumes with the next shard."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl._util.files import read_json, write_json
from zicl._util.locks import clear_folder, publish, work_folder
from zicl._util.progress import ProgressReport, silent
from zicl.corpus.store import Corpus, describe_files
from zicl.exceptions import EmptyCorpusError, StorageError
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.kinds import COMPRESSED, STORED, CompressedIndex, Kind, auto_kind, write_array, write_vectors
from zicl.retrieve.search import DEFAULT_PARAMS, SearchParams

FOLDER, VECTORS, ROWS, MANIFEST = "index", "vectors.faiss", "rows.npy", "manifest.json"
# A compressed index has one file more than a flat one.
FORMAT, COMPRESSED_FORMAT = 1, 2
_SHARD = 2048

EmbedShards = Callable[[Sequence[int], Path], Iterator[int]]
"""Writes the shards that start at these places to a folder, and yields how many are done."""


def build_index(
    corpus: Corpus,
    encoder: Encoder,
    *,
    kind: Kind = "auto",
    reuse: ReusableVectors | None = None,
    params: SearchParams = DEFAULT_PARAMS,
    elsewhere: EmbedShards | None = None,
    report: ProgressReport = silent,
) -> Path:
    """Embed every distinct sentence of ``corpus`` and index the vectors; return the index folder.

    Vectors to ``reuse`` are not computed again. ``params`` are written to the manifest as the tuned search parameters.
    ``elsewhere`` embeds the missing shards on other machines.
    """
    rows = corpus.indexed
    if len(rows) == 0:
        raise EmptyCorpusError(f"{corpus.path} holds no sentence to index")
    chosen = auto_kind(kind, len(rows))
    with work_folder(corpus.path / FOLDER, f"{corpus.path} is being indexed by another process") as partial:
        # Reused vectors in half precision must not pass for embedded ones in the next build.
        half = {"vectors": "half"} if reuse is not None and isinstance(reuse.index, CompressedIndex) else {}
        _prepare(partial, {"corpus": corpus.hash, "encoder": encoder.identity, **half})
        if elsewhere is not None:
            _embed_elsewhere(elsewhere, len(rows), partial, report)
        # What a killed run embedded is done before this one begins: the time left is that of the rest.
        missing = _missing(len(rows), partial)
        for number, start in enumerate(missing):
            report("embedding", max(len(rows) - (len(missing) - number) * _SHARD, 0), len(rows), "sentences")
            embed_shard(corpus, encoder, rows, start, partial, reuse)
        report("embedding", len(rows), len(rows), "sentences")
        shards = [_shard_path(partial, start) for start in range(0, len(rows), _SHARD)]
        report("indexing", 0, 1, chosen)
        complete = partial / "complete"
        shutil.rmtree(complete, ignore_errors=True)
        complete.mkdir()
        vectors = (np.load(shard) for shard in shards)
        write_vectors(chosen, encoder.dimension, len(rows), vectors, complete / VECTORS, partial / chosen, report)
        write_array(complete / ROWS, rows)
        compressed = chosen in COMPRESSED
        manifest = {
            "format": COMPRESSED_FORMAT if compressed else FORMAT,
            "corpus": corpus.text_hash,
            "encoder": {"name": encoder.name, "identity": encoder.identity, "dimension": encoder.dimension},
            "kind": chosen,
            "vectors": len(rows),
            "files": describe_files(complete, (VECTORS, ROWS, STORED) if compressed else (VECTORS, ROWS)),
        }
        write_json(complete / MANIFEST, params.add_to(manifest))
        publish(complete, corpus.path / FOLDER, MANIFEST)
        report("indexing", 1, 1, chosen)
    return corpus.path / FOLDER


def _prepare(partial: Path, key: dict[str, str]) -> None:
    """Keep the shards of a killed run with the same corpus and encoder; drop any others."""
    state = partial / "state.json"
    if state.is_file() and read_json(state) == key:
        return
    clear_folder(partial)
    write_json(state, key)


def _embed_elsewhere(elsewhere: EmbedShards, count: int, partial: Path, report: ProgressReport) -> None:
    """Embed the missing shards on other machines, and check that they have arrived."""
    wanted = _missing(count, partial)
    report("embedding", max(count - len(wanted) * _SHARD, 0), count, "sentences")
    for done in elsewhere(wanted, partial):
        report("embedding", max(count - (len(wanted) - done) * _SHARD, 0), count, "sentences")
    if lost := _missing(count, partial):
        raise StorageError(
            f"{len(lost)} of {len(wanted)} shards were embedded on other machines and are not in {partial}",
            hint="put the corpus in a folder that all machines of the cluster share",
        )


def _missing(count: int, partial: Path) -> list[int]:
    """Return where the shards start that are not embedded yet."""
    return [start for start in range(0, count, _SHARD) if not _shard_path(partial, start).exists()]


def embed_shard(
    corpus: Corpus,
    encoder: Encoder,
    rows: NDArray[np.int64],
    start: int,
    partial: Path,
    reuse: ReusableVectors | None = None,
) -> Path:
    """Write the vectors of the shard that starts at place ``start`` of ``rows``, unless they exist already."""

    def encode(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return encoder.encode(corpus.texts(rows.tolist()))

    path, shard = _shard_path(partial, start), rows[start : start + _SHARD]
    if not path.exists():
        vectors = encode(shard) if reuse is None else reuse.complete(start, shard, encode)
        write_array(path, vectors)
    return path


def _shard_path(partial: Path, start: int) -> Path:
    return partial / f"vectors-{start:012d}.npy"


@dataclass(frozen=True, eq=False)
class ReusableVectors:
    """Vectors of another index: for each sentence to embed, in order, the id of its vector there, or -1 without one.

    There may be fewer ids than sentences: the last sentences are new then.
    """

    index: Any
    ids: NDArray[np.int64]

    def complete(
        self,
        start: int,
        rows: NDArray[np.int64],
        encode: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    ) -> NDArray[np.float32]:
        """Return the vectors of ``rows``, which begin at place ``start``; only those without a vector are encoded."""
        ids = np.full(len(rows), -1, dtype=np.int64)
        known = self.ids[start : start + len(rows)]
        ids[: len(known)] = known
        new = ids < 0
        if np.all(new):
            return encode(rows)
        vectors = np.empty((len(rows), self.index.d), dtype=np.float32)
        vectors[~new] = self.index.reconstruct_batch(ids[~new])
        if np.any(new):
            vectors[new] = encode(rows[new])
        return vectors
