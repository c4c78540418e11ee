"""Finishing a corpus from its shards: what the sample left out is dropped, duplicates are marked."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zicl import __version__
from zicl._util.files import write_json
from zicl._util.progress import Report
from zicl.corpus.dedup import Seen
from zicl.corpus.documents import same_text_hash
from zicl.corpus.files import describe_files
from zicl.corpus.sample import BottomSample
from zicl.corpus.shards import State, read_table, samples_of
from zicl.corpus.sources import Source
from zicl.corpus.store import FORMAT, HASHES, MANIFEST, SCHEMA, SENTENCES, TEXTS, in_order, totals

if TYPE_CHECKING:
    from zicl.corpus.builder import BuildOptions


def write_corpus(
    sources: Sequence[Source], options: BuildOptions, partial: Path, state: State, seen: Seen, report: Report
) -> Path:
    """Write the final files, the manifest last, to a folder of their own; the shards stay until it is in place."""
    whole = partial / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    whole.mkdir()
    samples = samples_of(sources, options, partial, state)
    codes = {name: code for code, name in enumerate(samples)}
    hashes = [read_table(partial / f"hashes-{number}.arrow") for _, number in state.shards]
    counts = {name: dict.fromkeys(("sentences", "indexed", "paragraphs", "single"), 0) for name in samples}
    with pa.ipc.new_file(str(whole / SENTENCES), SCHEMA) as file:
        for done, (domain, number) in enumerate(state.shards, start=1):
            batch, distinct, shard_counts = _final_batch(
                read_table(partial / f"part-{number}.arrow"), samples[domain], seen, codes[domain]
            )
            file.write_batch(batch)
            hashes.append(distinct)
            for name, value in shard_counts.items():
                counts[domain][name] += value
            report("storing", done, len(state.shards))
    with pa.ipc.new_file(str(whole / TEXTS), HASHES) as file:
        file.write_table(in_order(hashes))
    _write_manifest(sources, options, whole, state, counts)
    return whole


def _final_batch(
    table: pa.Table, sample: BottomSample, seen: Seen, code: int
) -> tuple[pa.RecordBatch, pa.Table, dict[str, int]]:
    """A shard's sentences as they are stored, the hashes of those seen for the first time, and counts."""
    kept = sample.keeps(table["priority"].to_numpy())
    if not kept.all():
        table = table.filter(pa.array(kept))
    texts = table["text"].to_pylist()
    hashes = np.fromiter((same_text_hash(text) for text in texts), dtype=np.uint64, count=len(texts))
    first = seen.first(hashes)
    distinct = pa.table([pa.array(hashes[first]), table["document"].filter(pa.array(first))], schema=HASHES)
    starts = table["position"].to_numpy() == 0
    alone = starts & np.append(starts[1:], True) if len(starts) else starts
    columns = {
        "text": table["text"],
        "document": table["document"],
        "position": table["position"],
        "domain": pa.array(np.full(len(table), code, dtype=np.int16)),
        "indexed": pa.array(first),
    }
    batch = pa.table(columns, schema=SCHEMA).combine_chunks().to_batches()
    counts = {
        "sentences": len(table),
        "indexed": first.sum(),
        "paragraphs": starts.sum(),
        "single": alone.sum(),
    }
    empty = pa.RecordBatch.from_pylist([], schema=SCHEMA)
    return (batch[0] if batch else empty), distinct, {name: int(value) for name, value in counts.items()}


def _write_manifest(
    sources: Sequence[Source],
    options: BuildOptions,
    whole: Path,
    state: State,
    counts: dict[str, dict[str, int]],
) -> None:
    domains = [{"name": name, "paragraphs_read": state.paragraphs.get(name, 0), **c} for name, c in counts.items()]
    manifest = {
        "format": FORMAT,
        "zicl": __version__,
        "options": asdict(options),
        "documents": state.documents,
        "domains": domains,
        "sources": [
            {"name": s.name, "domain": s.domain, "first_document": document, "first_shard": shard}
            for s, document, shard in zip(sources, state.first_documents, state.first_shards, strict=True)
        ],
        **totals(domains),
        "files": describe_files(whole, (SENTENCES, TEXTS)),
    }
    write_json(whole / MANIFEST, manifest)
