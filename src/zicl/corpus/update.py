"""A corpus written anew from one that exists: followed by another, or without its removed domains.

What is written is, to the byte, what building it from the raw text would have written.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from zicl._util.files import locked, write_json
from zicl._util.process import __version__
from zicl._util.progress import ProgressReport, silent
from zicl._util.registry import did_you_mean
from zicl.corpus.builder import build_corpus
from zicl.corpus.dedup import SeenSentences
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import Source
from zicl.corpus.store import (
    FORMAT,
    HASHES,
    MANIFEST,
    SCHEMA,
    SENTENCES,
    TEXTS,
    Corpus,
    describe_files,
    read_manifest,
    sorted_domains,
    totals,
)
from zicl.exceptions import EmptyCorpusError, UsageError


def write_concatenated(first: Corpus, second: Corpus, folder: Path, report: ProgressReport = silent) -> None:
    """``first`` followed by ``second``, in which the sentences of ``first`` are not indexed again."""
    documents, domains, before = first.document_ids, len(first.domains), _sources_of_shards(first)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from _shards(first)
        for shard in _shards(second):
            yield _changed(shard, documents, np.asarray(shard["domain"]) + domains, shard["indexed"])

    texts = second.known_texts
    shifted = pa.table([texts["hash"], np.asarray(texts["document"]) + documents], schema=HASHES)
    sources = [
        {**source, "first_shard": int(np.searchsorted(before, number))}
        for number, source in enumerate(first.manifest["sources"])
    ] + [
        {**s, "first_document": s["first_document"] + documents, "first_shard": s["first_shard"] + len(before)}
        for s in second.manifest["sources"]
    ]
    manifest = {
        "options": first.manifest["options"],
        "documents": documents + second.document_ids,
        "domains": first.manifest["domains"] + second.manifest["domains"],
        "sources": sources,
    }
    _write(folder, batches(), sorted_domains([first.known_texts, shifted]), manifest, report)


def write_compacted(corpus: Corpus, folder: Path, report: ProgressReport = silent) -> None:
    """What is left of a corpus without its removed domains."""
    sources = corpus.manifest["sources"]
    kept = [number for number, source in enumerate(sources) if source["domain"] in corpus.domains]
    of_shards = _sources_of_shards(corpus)
    bounds = np.array([*(source["first_document"] for source in sources), corpus.document_ids])
    sizes, shifts, written = np.diff(bounds), np.zeros(len(sources), dtype=np.int64), list[dict[str, Any]]()
    documents = shards = 0
    for number in kept:
        written.append({**sources[number], "first_document": documents, "first_shard": shards})
        shifts[number] = documents - bounds[number]
        documents, shards = documents + int(sizes[number]), shards + of_shards.count(number)
    codes = {name: code for code, name in enumerate(corpus.domains)}
    indexed = np.zeros(len(corpus), dtype=bool)
    indexed[corpus.indexed] = True

    def batches() -> Iterator[pa.RecordBatch]:
        row = 0
        for shard, number in zip(_shards(corpus), of_shards, strict=True):
            here = pa.array(indexed[row : row + len(shard)])
            row += len(shard)
            if number in kept:
                code = np.full(len(shard), codes[sources[number]["domain"]])
                yield _changed(shard, int(shifts[number]), code, here)

    stand_ins = corpus.stand_ins
    added = pa.table([stand_ins.hashes, np.asarray(corpus.table["document"])[stand_ins.rows]], schema=HASHES)
    texts = pa.concat_tables([corpus.known_texts, added])
    own = np.searchsorted(bounds[:-1], np.asarray(texts["document"]), side="right") - 1
    stays = np.isin(own, kept)
    shifted = (np.asarray(texts["document"]) + shifts[own])[stays]
    manifest = {
        "options": corpus.manifest["options"],
        "documents": documents,
        "domains": [domain for domain in corpus.manifest["domains"] if not domain.get("removed")],
        "sources": written,
    }
    texts = pa.table([np.asarray(texts["hash"])[stays], shifted], schema=HASHES)
    _write(folder, batches(), sorted_domains([texts]), manifest, report)


def _write(
    folder: Path, batches: Iterable[pa.RecordBatch], texts: pa.Table, manifest: dict[str, Any], report: ProgressReport
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with pa.ipc.new_file(str(folder / SENTENCES), SCHEMA) as file:
        for done, batch in enumerate(batches, start=1):
            file.write_batch(batch)
            report("storing", done, None)
    with pa.ipc.new_file(str(folder / TEXTS), HASHES) as file:
        file.write_table(texts)
    about = {"format": FORMAT, "zicl": __version__, **totals(manifest["domains"])}
    write_json(folder / MANIFEST, {**manifest, **about, "files": describe_files(folder, (SENTENCES, TEXTS))})


def _changed(shard: pa.RecordBatch, documents: int, domains: Any, indexed: Any) -> pa.RecordBatch:
    columns = {
        "text": shard["text"],
        "document": pa.array(np.asarray(shard["document"]) + documents),
        "position": shard["position"],
        "domain": pa.array(np.asarray(domains, dtype=np.int16)),
        "indexed": indexed,
    }
    return pa.record_batch(list(columns.values()), schema=SCHEMA)


def _shards(corpus: Corpus) -> list[pa.RecordBatch]:
    """The pieces the sentences were written in, empty ones too; none of them is read here."""
    file = pa.ipc.open_file(pa.memory_map(str(corpus.path / SENTENCES)))
    return [file.get_batch(number) for number in range(file.num_record_batches)]


def _sources_of_shards(corpus: Corpus) -> list[int]:
    """The number of the source that each shard was read from."""
    sources, shards = corpus.manifest["sources"], _shards(corpus)
    if all("first_shard" in source for source in sources):
        starts = [source["first_shard"] for source in sources]
        return [int(np.searchsorted(starts, number, side="right")) - 1 for number in range(len(shards))]
    # A corpus that was built before this was noted: a shard's first sentence says it.
    found, starts = list[int](), [source["first_document"] for source in sources]
    for shard in shards:
        here = int(np.searchsorted(starts, shard["document"][0].as_py(), side="right")) - 1 if len(shard) else None
        found.append(here if here is not None else (found[-1] if found else 0))
    return found


# -- Adding domains to a corpus that exists: only their text is read and split; the rest is copied.


_AT_ONCE = 1 << 16


def check_new_domains(corpus: Corpus, sources: Sequence[Source]) -> None:
    """What is added are new domains of a corpus without removed ones."""
    if corpus.part.without:
        raise UsageError(
            f"{corpus.path} has removed domains that are still on disk: {', '.join(corpus.part.without)}",
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
    """Write the text of ``old`` followed by that of new domains to a folder in ``work``; reading them resumes."""
    place = work / "new"
    if (place / MANIFEST).is_file():
        new = Corpus.open(place, verify=False)
    else:
        new = build_corpus(sources, place, options, seen=_seen(old, report), report=report)
    whole = work / "whole"
    write_concatenated(old, new, whole, report)
    return whole


def _seen(corpus: Corpus, report: ProgressReport) -> SeenSentences:
    """The distinct sentences of a corpus."""
    seen, rows = SeenSentences(), corpus.indexed
    for start in range(0, len(rows), _AT_ONCE):
        report("comparing", start, len(rows))
        seen.first(corpus.text_hashes(rows[start : start + _AT_ONCE]))
    return seen


# -- Removing a domain: a note in the manifest leaves it out of everything at once; ``compact`` frees its space.


def remove_domains(path: str | Path, names: Sequence[str]) -> Corpus:
    """Leave domains out of every search, draw and count. Their text and vectors stay on disk until ``compact``."""
    folder = Path(path).resolve()
    work = folder.with_name(folder.name + ".partial")
    existed = work.exists()
    read_manifest(folder)
    with locked(work, f"{folder} is being changed by another process"):
        try:
            write_json(folder / MANIFEST, _without(_checked(folder, names), names))
        finally:
            # What a killed change left there is kept for it.
            if not existed:
                shutil.rmtree(work, ignore_errors=True)
    return Corpus.open(folder, verify=False)


def _checked(folder: Path, names: Sequence[str]) -> Corpus:
    corpus = Corpus.open(folder)
    for name in names:
        if name in corpus.part.without:
            raise UsageError(
                f"the domain {name!r} is removed already", hint=f"free its space: zicl corpus compact {folder}"
            )
        if name not in corpus.domains:
            raise did_you_mean("domain", name, corpus.domains)
    return corpus


def _without(corpus: Corpus, names: Sequence[str]) -> dict[str, Any]:
    """The manifest with these domains marked, and its counts without them."""
    domains = [
        {**domain, "removed": True} if domain["name"] in names else domain for domain in corpus.manifest["domains"]
    ]
    manifest = {**corpus.manifest, "domains": domains, "document_ids": corpus.document_ids}
    if totals(domains)["sentences"] == 0:
        raise EmptyCorpusError(
            f"without {', '.join(names)} no sentence of {corpus.path} would be left",
            hint="delete the folder if it is not needed any more",
        )
    # A sentence whose twin is removed with its domain is now the first with its text.
    rest = Corpus(corpus.path, manifest)
    domains = [d if d.get("removed") else {**d, "indexed": len(rest.domain_rows(d["name"]))} for d in domains]
    bounds = [*(source["first_document"] for source in corpus.manifest["sources"]), corpus.document_ids]
    documents = sum(
        end - start
        for (start, end), source in zip(pairwise(bounds), corpus.manifest["sources"], strict=True)
        if source["domain"] in rest.domains
    )
    return {**manifest, "domains": domains, "documents": documents, **totals(domains)}
