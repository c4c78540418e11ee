"""Building a corpus: read → split → sample → deduplicate → store, streaming and resumable.

Two steps. *Reading* writes shards of split paragraphs and notes after each how far it is, so that a
killed build goes on from its last shard. *Finishing* drops what the sample left out, marks duplicates
and writes the final files; it is quick and starts over if it is killed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from zicl._util.files import (
    check_replaceable,
    clear_folder,
    locked,
    move_in,
    read_json,
    storage_errors,
    write_json,
    write_text,
)
from zicl._util.process import __version__
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import stable_hash
from zicl.corpus.dedup import SeenSentences, same_text_hash
from zicl.corpus.sample import ParagraphSample
from zicl.corpus.shards import BuildOptions, BuildState, read_shards, read_table, samples_of
from zicl.corpus.sources import Source
from zicl.corpus.splitter import SplitMany
from zicl.corpus.store import (
    FORMAT,
    HASHES,
    MANIFEST,
    SCHEMA,
    SENTENCES,
    TEXTS,
    Corpus,
    describe_files,
    sorted_domains,
    totals,
)
from zicl.exceptions import EmptyCorpusError, StorageError, UsageError

_DEFAULTS = BuildOptions()
# A file beside the manifest that says which build wrote it; it depends on paths and times, the rest does not.
BUILD_KEY = "build.key"


def build_corpus(
    sources: Sequence[Source],
    output: str | Path,
    options: BuildOptions = _DEFAULTS,
    *,
    overwrite: bool = False,
    seen: SeenSentences | None = None,
    split: SplitMany | None = None,
    report: ProgressReport = silent,
) -> Corpus:
    """Build the corpus ``output`` from ``sources``; a build that was killed goes on where it was.

    Sentences that were ``seen`` before, in the corpus this one is to follow, are stored but not indexed. ``split``
    splits the text elsewhere, as the splitter of the options would.
    """
    target = Path(output)
    if options.max_paragraphs < 1:
        raise UsageError(f"max_paragraphs is {options.max_paragraphs}; expected at least 1")
    if target.exists() and not overwrite:
        raise StorageError(f"{target} exists already", hint="choose another name with -o, or pass --overwrite")
    check_replaceable(target, MANIFEST, "corpus")
    partial = target.with_name(target.name + ".partial")
    can_resume = all(source.path != "-" for source in sources)
    with locked(partial, f"{target} is being built by another process"):
        state = _resume(partial, build_key(sources, options), can_resume=can_resume)
        read_shards(sources, options, partial, state, report, split)
        if state.sentences == 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise EmptyCorpusError(
                "no sentence was found in " + ", ".join(source.name for source in sources[:5]),
                hint="check that the files hold text, and --text-column for .jsonl, .csv and .parquet",
            )
        with storage_errors(partial):
            whole = write_corpus(sources, options, partial, state, seen or SeenSentences(), report)
            write_text(whole / BUILD_KEY, state.key + "\n")
            move_in(whole, target)
        shutil.rmtree(partial, ignore_errors=True)
    return Corpus.open(target, verify=False)


def build_key(sources: Sequence[Source], options: BuildOptions) -> str:
    """Identifies a build: its sources as they are now, and its options."""
    stamps = [(s.path, s.domain, s.format, s.size, os.stat(s.path).st_mtime_ns if s.is_file else 0) for s in sources]
    return f"{stable_hash(FORMAT, __version__, repr(stamps), repr(asdict(options))):032x}"


def _resume(partial: Path, key: str, *, can_resume: bool) -> BuildState:
    """The state of a killed build of the same sources, or a fresh one."""
    note = partial / "state.json"
    if note.is_file() and can_resume:
        content = read_json(note)
        if content.get("key") == key and "first_shards" in content:
            return BuildState(**content)
    # Another build, or standard input, which cannot be read twice: nothing of it can be used.
    clear_folder(partial)
    return BuildState(key)


# -- Finishing a corpus from its shards: what the sample left out is dropped, duplicates are marked.


def write_corpus(
    sources: Sequence[Source],
    options: BuildOptions,
    partial: Path,
    state: BuildState,
    seen: SeenSentences,
    report: ProgressReport,
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
        file.write_table(sorted_domains(hashes))
    _write_manifest(sources, options, whole, state, counts)
    return whole


def _final_batch(
    table: pa.Table, sample: ParagraphSample, seen: SeenSentences, code: int
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
    state: BuildState,
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
