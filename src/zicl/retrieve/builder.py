"""Vectors that need not be computed again: those of another index whose sentences are the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl._util.files import clear_folder, locked, move_in, read_json, storage_errors, write_json, writing
from zicl._util.progress import ProgressReport, silent
from zicl.corpus.store import Corpus, describe_files
from zicl.exceptions import EmptyCorpusError, StorageError
from zicl.retrieve import kinds as compressed
from zicl.retrieve import kinds as vectors
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.kinds import COMPRESSED, STORED, Kind
from zicl.retrieve.search import DEFAULT_PARAMS, SearchParams


@dataclass(frozen=True, eq=False)
class ReusableVectors:
    """For each sentence to index, in their order, the number of its vector in ``index``, -1 where there is none.

    Sentences beyond the last number are new.
    """

    index: Any
    numbers: NDArray[np.int64]

    def complete(
        self, start: int, rows: NDArray[np.int64], encode: Callable[[Sequence[int]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """The vectors of the sentences from place ``start`` on, which stand in ``rows``; the new ones are encoded."""
        numbers = np.full(len(rows), -1, dtype=np.int64)
        own = self.numbers[start : start + len(rows)]
        numbers[: len(own)] = own
        if np.all(numbers < 0):
            return encode(rows.tolist())
        vectors = np.empty((len(rows), self.index.d), dtype=np.float32)
        vectors[numbers >= 0] = self.index.reconstruct_batch(numbers[numbers >= 0])
        if np.any(numbers < 0):
            vectors[numbers < 0] = encode(rows[numbers < 0].tolist())
        return vectors


NO_VECTORS = ReusableVectors(None, np.empty(0, dtype=np.int64))


# -- Embedding a corpus in shards, and the index over them. A killed run goes on with the next shard.


FOLDER, VECTORS, ROWS, MANIFEST = "index", "vectors.faiss", "rows.npy", "manifest.json"
# The format of an index with no more than its FAISS file, and of a compressed one.
FORMAT, COMPRESSED_FORMAT = 1, 2
_SHARD = 2048
# Writes the shards that begin at these numbers to a folder, and counts them.
EmbedShards = Callable[[Sequence[int], Path], Iterator[int]]


def build_index(
    corpus: Corpus,
    encoder: Encoder,
    *,
    kind: Kind = "auto",
    known: ReusableVectors | None = None,
    effort: SearchParams = DEFAULT_PARAMS,
    elsewhere: EmbedShards | None = None,
    report: ProgressReport = silent,
) -> Path:
    """Embed every distinct sentence of ``corpus`` and index the vectors; returns the index folder.

    Vectors that are ``known`` from another index are taken from it, and an ``effort`` that was picked for it.
    ``elsewhere`` embeds what is missing on other machines.
    """
    rows = corpus.indexed
    if len(rows) == 0:
        raise EmptyCorpusError(f"{corpus.path} holds no sentence to index")
    chosen = vectors.auto_kind(kind, len(rows))
    target = corpus.path / FOLDER
    partial = corpus.path / (FOLDER + ".partial")
    with locked(partial, f"{corpus.path} is being indexed by another process"), storage_errors(partial):
        # Vectors that were stored in half precision must not be taken for embedded ones by the next build.
        half = {"vectors": "half"} if known is not None and isinstance(known.index, compressed.CompressedIndex) else {}
        _prepare(partial, {"corpus": corpus.hash, "encoder": encoder.identity, **half})
        if elsewhere is not None:
            missing = [start for start in range(0, len(rows), _SHARD) if not shard_path(partial, start).exists()]
            for done in elsewhere(missing, partial):
                report("embedding", len(rows) - (len(missing) - done) * _SHARD, len(rows), "sentences")
            if unseen := [start for start in missing if not shard_path(partial, start).exists()]:
                raise StorageError(
                    f"{len(unseen)} of {len(missing)} pieces were embedded on other machines and are not in {partial}",
                    hint="the folder of the corpus has to be one that all machines of the cluster share",
                )
        shards = _embed(corpus, encoder, rows, partial, known or NO_VECTORS, report)
        report("indexing", 0, 1, chosen)
        whole = partial / "whole"
        shutil.rmtree(whole, ignore_errors=True)
        whole.mkdir()
        _write_index(chosen, encoder.dimension, shards, len(rows), whole, partial, report)
        np.save(whole / ROWS, rows)
        packed = chosen in COMPRESSED
        manifest = {
            "format": COMPRESSED_FORMAT if packed else FORMAT,
            "corpus": corpus.text_hash,
            "encoder": {"name": encoder.name, "identity": encoder.identity, "dimension": encoder.dimension},
            "kind": chosen,
            "vectors": len(rows),
            "files": describe_files(whole, (VECTORS, ROWS, STORED) if packed else (VECTORS, ROWS)),
        }
        write_json(whole / MANIFEST, effort.kept(manifest))
        move_in(whole, target)
        report("indexing", 1, 1, chosen)
    shutil.rmtree(partial, ignore_errors=True)
    return target


def _prepare(partial: Path, key: dict[str, str]) -> None:
    """Keep the shards of a killed run with the same corpus and encoder; drop any others."""
    note = partial / "state.json"
    if note.is_file() and read_json(note) == key:
        return
    clear_folder(partial)
    write_json(note, key)


def _embed(
    corpus: Corpus, encoder: Encoder, rows: Any, partial: Path, known: ReusableVectors, report: ProgressReport
) -> list[Path]:
    shards = []
    for start in range(0, len(rows), _SHARD):
        report("embedding", start, len(rows), "sentences")
        shards.append(embed_shard(corpus, encoder, rows, start, partial, known))
    report("embedding", len(rows), len(rows), "sentences")
    return shards


def shard_path(partial: Path, start: int) -> Path:
    """The file of the vectors from a number on."""
    return partial / f"vectors-{start:012d}.npy"


def embed_shard(
    corpus: Corpus,
    encoder: Encoder,
    rows: NDArray[np.int64],
    start: int,
    partial: Path,
    known: ReusableVectors = NO_VECTORS,
) -> Path:
    """Write one shard of vectors, unless it is there: the same wherever it is done."""
    path = shard_path(partial, start)
    if not path.exists():
        found = known.complete(start, rows[start : start + _SHARD], lambda new: encoder.encode(corpus.texts(new)))
        with writing(path) as temporary, temporary.open("wb") as stream:
            np.save(stream, found)
    return path


def _write_index(
    kind: str, dimension: int, shards: list[Path], count: int, whole: Path, partial: Path, report: ProgressReport
) -> None:
    parts = (np.load(shard) for shard in shards)
    if kind in COMPRESSED:
        take = compressed.store(dimension, count, parts, whole / STORED)
        compressed.write_compressed(kind, dimension, count, take, partial / kind, whole / VECTORS, report)
        return
    wanted = vectors.training_numbers(kind, count)
    sample = np.concatenate([np.empty((0, dimension), dtype=np.float32), *_reused(shards, wanted)])
    vectors.write(kind, dimension, parts, sample, count, whole / VECTORS)


def _reused(shards: list[Path], wanted: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
    """Some vectors of the shards, by their numbers."""
    for number in np.unique(wanted // _SHARD):
        yield np.load(shards[number])[wanted[wanted // _SHARD == number] - number * _SHARD]
