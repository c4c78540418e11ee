"""Change a corpus that exists: add domains, remove them, and free the space of removed ones.

Adding and compacting write a new corpus, byte for byte the one that building it from the raw text would give.
``zicl.retrieve.update`` does the same with the index.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zicl._util.files import write_json
from zicl._util.locks import locked
from zicl._util.progress import ProgressReport, silent
from zicl._util.registry import did_you_mean
from zicl.corpus.builder import build_corpus
from zicl.corpus.dedup import SeenSentences
from zicl.corpus.manifest import MANIFEST, SENTENCES, read_manifest
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import Source
from zicl.corpus.store import HASHES, SCHEMA, Corpus, finish_corpus, total_counts
from zicl.exceptions import EmptyCorpusError, UsageError

_HASHED_AT_ONCE = 1 << 16


# -- adding domains --------------------------------------------------------------------------------------


def check_new_domains(corpus: Corpus, sources: Sequence[Source]) -> None:
    """Check that the domains are new, and that the corpus has no removed ones."""
    if corpus.subset.without:
        raise UsageError(
            f"{corpus.path} has removed domains that are still on disk: {', '.join(corpus.subset.without)}",
            hint=f"free their space first: zicl corpus compact {corpus.path}",
        )
    for source in sources:
        if source.domain in corpus.domains:
            raise UsageError(
                f"{corpus.path} has a domain {source.domain!r} already",
                hint="give the new one another name, or remove the old one first: zicl corpus remove",
            )


def add_text(
    old: Corpus, sources: Sequence[Source], options: BuildOptions, work: Path, report: ProgressReport = silent
) -> Path:
    """Write ``old`` followed by new domains to a folder in ``work``, and return it; a killed call resumes reading."""
    added = work / "new"
    if (added / MANIFEST).is_file():
        new = Corpus.open(added, verify=False)
    else:
        new = build_corpus(sources, added, options, seen=_seen_sentences(old, report), report=report)
    combined = work / "whole"
    kept = {**old.manifest["options"], "domain_paragraphs": options.domain_paragraphs}
    _write_concatenated(old, new, combined, kept, report)
    return combined


def _seen_sentences(corpus: Corpus, report: ProgressReport) -> SeenSentences:
    seen, rows = SeenSentences(), corpus.indexed
    for start in range(0, len(rows), _HASHED_AT_ONCE):
        report("comparing", start, len(rows))
        seen.first(corpus.text_hashes(rows[start : start + _HASHED_AT_ONCE]))
    return seen


def _write_concatenated(
    first: Corpus, second: Corpus, folder: Path, options: dict[str, Any], report: ProgressReport
) -> None:
    """Write ``first`` followed by ``second``, which was built with the sentences of ``first`` as seen."""
    documents, domains, shards = first.document_ids, len(first.domains), len(_shards(first))

    def batches() -> Iterator[pa.RecordBatch]:
        yield from _shards(first)
        for shard in _shards(second):
            yield _changed(shard, documents, np.asarray(shard["domain"]) + domains, shard["indexed"])

    texts = second.hash_table
    shifted = pa.table([texts["hash"], np.asarray(texts["document"]) + documents], schema=HASHES)
    manifest = {
        "options": options,
        "documents": documents + second.document_ids,
        "domains": first.manifest["domains"] + second.manifest["domains"],
        "sources": [
            *first.manifest["sources"],
            *(
                {**s, "first_document": s["first_document"] + documents, "first_shard": s["first_shard"] + shards}
                for s in second.manifest["sources"]
            ),
        ],
    }
    _write(folder, batches(), [first.hash_table, shifted], manifest, report)


# -- removing domains ------------------------------------------------------------------------------------


def remove_domains(path: str | Path, names: Sequence[str]) -> Corpus:
    """Mark domains as removed: nothing uses them any more. Text and vectors stay on disk until ``compact``."""
    folder = Path(path).resolve()
    read_manifest(folder)
    # The work folder of a killed change stays: it is needed to resume.
    with locked(folder.with_name(folder.name + ".partial"), f"{folder} is being changed by another process"):
        corpus = Corpus.open(folder)
        _check_removable(corpus, names)
        write_json(folder / MANIFEST, _manifest_without(corpus, names))
    return Corpus.open(folder, verify=False)


def _check_removable(corpus: Corpus, names: Sequence[str]) -> None:
    for name in names:
        if name in corpus.subset.without:
            raise UsageError(
                f"the domain {name!r} is removed already", hint=f"free its space: zicl corpus compact {corpus.path}"
            )
        if name not in corpus.domains:
            raise did_you_mean("domain", name, corpus.domains)


def _manifest_without(corpus: Corpus, names: Sequence[str]) -> dict[str, Any]:
    """Return the manifest with these domains marked as removed, and counts without them."""
    domains = [
        {**domain, "removed": True} if domain["name"] in names else domain for domain in corpus.manifest["domains"]
    ]
    manifest = {**corpus.manifest, "domains": domains, "document_ids": corpus.document_ids}
    if total_counts(domains)["sentences"] == 0:
        raise EmptyCorpusError(
            f"without {', '.join(names)} no sentence of {corpus.path} would be left",
            hint="delete the folder if it is not needed any more",
        )
    # Duplicates of removed sentences are indexed now.
    rest = Corpus(corpus.path, manifest)
    domains = [d if d.get("removed") else {**d, "indexed": len(rest.domain_rows(d["name"]))} for d in domains]
    documents = sum(
        end - start
        for (start, end), source in zip(pairwise(_document_bounds(corpus)), corpus.manifest["sources"], strict=True)
        if source["domain"] in rest.domains
    )
    return {**manifest, "domains": domains, "documents": documents, **total_counts(domains)}


def write_compacted(corpus: Corpus, folder: Path, report: ProgressReport = silent) -> None:
    """Write a corpus without its removed domains to ``folder``; documents, domains and rows get new numbers."""
    sources = corpus.manifest["sources"]
    kept = [number for number, source in enumerate(sources) if source["domain"] in corpus.domains]
    shard_sources = _shard_sources(corpus)
    bounds = np.array(_document_bounds(corpus))
    sizes, shifts, kept_sources = np.diff(bounds), np.zeros(len(sources), dtype=np.int64), list[dict[str, Any]]()
    documents = shards = 0
    for number in kept:
        kept_sources.append({**sources[number], "first_document": documents, "first_shard": shards})
        shifts[number] = documents - bounds[number]
        documents, shards = documents + int(sizes[number]), shards + shard_sources.count(number)
    codes = {name: code for code, name in enumerate(corpus.domains)}
    indexed = np.zeros(len(corpus), dtype=bool)
    indexed[corpus.indexed] = True

    def batches() -> Iterator[pa.RecordBatch]:
        row = 0
        for shard, number in zip(_shards(corpus), shard_sources, strict=True):
            shard_indexed = pa.array(indexed[row : row + len(shard)])
            row += len(shard)
            if number in kept:
                domains = np.full(len(shard), codes[sources[number]["domain"]])
                yield _changed(shard, int(shifts[number]), domains, shard_indexed)

    manifest = {
        "options": corpus.manifest["options"],
        "documents": documents,
        "domains": [domain for domain in corpus.manifest["domains"] if not domain.get("removed")],
        "sources": kept_sources,
    }
    _write(folder, batches(), [_compacted_hashes(corpus, kept, bounds, shifts)], manifest, report)


def _compacted_hashes(
    corpus: Corpus, kept: Sequence[int], bounds: NDArray[np.int64], shifts: NDArray[np.int64]
) -> pa.Table:
    """Return the hash table of the kept sources, with new document numbers."""
    replacements = corpus.replacements
    added = pa.table([replacements.hashes, np.asarray(corpus.table["document"])[replacements.rows]], schema=HASHES)
    texts = pa.concat_tables([corpus.hash_table, added])
    documents = np.asarray(texts["document"])
    sources = np.searchsorted(bounds[:-1], documents, side="right") - 1
    stays = np.isin(sources, kept)
    return pa.table([np.asarray(texts["hash"])[stays], (documents + shifts[sources])[stays]], schema=HASHES)


# -- shards of a corpus ----------------------------------------------------------------------------------


def _write(
    folder: Path,
    batches: Iterable[pa.RecordBatch],
    hashes: Sequence[pa.Table],
    manifest: dict[str, Any],
    report: ProgressReport,
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with pa.ipc.new_file(str(folder / SENTENCES), SCHEMA) as file:
        for done, batch in enumerate(batches, start=1):
            file.write_batch(batch)
            report("storing", done, None)
    finish_corpus(folder, hashes, manifest)


def _changed(shard: pa.RecordBatch, shift: int, domains: Any, indexed: Any) -> pa.RecordBatch:
    """Return a shard with shifted document numbers, and other domains and indexed rows."""
    columns = {
        "text": shard["text"],
        "document": pa.array(np.asarray(shard["document"]) + shift),
        "position": shard["position"],
        "domain": pa.array(np.asarray(domains, dtype=np.int16)),
        "indexed": indexed,
    }
    return pa.record_batch(list(columns.values()), schema=SCHEMA)


def _shards(corpus: Corpus) -> list[pa.RecordBatch]:
    """Return the batches in which the sentences were written, empty ones included; they are memory-mapped."""
    file = pa.ipc.open_file(pa.memory_map(str(corpus.path / SENTENCES)))
    return [file.get_batch(number) for number in range(file.num_record_batches)]


def _shard_sources(corpus: Corpus) -> list[int]:
    """Return the number of the source of each shard."""
    starts = [source["first_shard"] for source in corpus.manifest["sources"]]
    return [int(np.searchsorted(starts, number, side="right")) - 1 for number in range(len(_shards(corpus)))]


def _document_bounds(corpus: Corpus) -> list[int]:
    """Return the first document of each source, and one more than the last document."""
    return [*(source["first_document"] for source in corpus.manifest["sources"]), corpus.document_ids]
