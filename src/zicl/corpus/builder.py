"""Build a corpus: read → split → sample → deduplicate → store.

Reading writes shards of split paragraphs, and a killed build resumes after its last shard (``zicl.corpus.shards``).
Finishing drops what is not in the sample, marks duplicates and writes the final files; it is fast and starts again.
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
    exists_error,
    read_json,
    write_text,
)
from zicl._util.locks import clear_folder, publish, remove_finished, work_folder
from zicl._util.process import __version__
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import stable_hash
from zicl.corpus.dedup import SeenSentences, same_text_hash
from zicl.corpus.manifest import FORMAT, MANIFEST, SENTENCES
from zicl.corpus.sample import ParagraphSample
from zicl.corpus.shards import (
    STATE,
    BuildOptions,
    BuildState,
    paragraph_samples,
    read_document_hashes,
    read_sentences,
    write_shards,
)
from zicl.corpus.sources import Source
from zicl.corpus.splitter import SplitMany
from zicl.corpus.store import HASHES, SCHEMA, Corpus, finish_corpus
from zicl.exceptions import EmptyCorpusError, UsageError

_DEFAULTS = BuildOptions()
# A file beside the manifest that identifies the build; unlike the other files it depends on paths and times.
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
    """Build the corpus ``output`` from ``sources``, or resume a killed build.

    Sentences in ``seen``, those of a corpus that this one will extend, are stored but not indexed. ``split`` replaces
    the splitter of the options, e.g. to split on a cluster, and must give the same sentences.
    """
    target = Path(output)
    for name, limit in {"max_paragraphs": options.max_paragraphs, **options.domain_paragraphs}.items():
        if limit < 1:
            raise UsageError(f"the maximum number of paragraphs, {name}, is {limit}; expected at least 1")
    remove_finished(target, MANIFEST)
    if target.exists() and not overwrite:
        raise exists_error(target, overwrite=True)
    check_replaceable(target, MANIFEST, "a corpus")
    can_resume = all(source.path != "-" for source in sources)
    with work_folder(target, f"{target} is being built by another process") as partial:
        state = _resume(partial, build_key(sources, options), can_resume=can_resume)
        write_shards(sources, options, partial, state, report, split)
        if state.sentences == 0:
            clear_folder(partial)
            raise EmptyCorpusError(
                "no sentence was found in " + ", ".join(source.name for source in sources[:5]),
                hint="check that the files hold text, and --text-column for .jsonl, .csv and .parquet",
            )
        complete = _write_corpus(sources, options, partial, state, seen or SeenSentences(), report)
        write_text(complete / BUILD_KEY, state.key + "\n")
        publish(complete, target, MANIFEST)
    return Corpus.open(target, verify=False)


def build_key(sources: Sequence[Source], options: BuildOptions) -> str:
    """Return a string that identifies a build: its options, and its sources with their sizes and times."""
    stamps = [(repr(s), s.size, os.stat(s.path).st_mtime_ns if s.is_file else 0) for s in sources]
    return f"{stable_hash(FORMAT, __version__, repr(stamps), repr(asdict(options))):032x}"


def _resume(partial: Path, key: str, *, can_resume: bool) -> BuildState:
    """Return the state of a killed build with the same key, or a new one."""
    if (partial / STATE).is_file() and can_resume:
        content = read_json(partial / STATE)
        if content.get("key") == key:
            return BuildState(**content)
    # The shards of another build, or of standard input, which cannot be read again, are of no use.
    clear_folder(partial)
    return BuildState(key)


def _write_corpus(
    sources: Sequence[Source],
    options: BuildOptions,
    partial: Path,
    state: BuildState,
    seen: SeenSentences,
    report: ProgressReport,
) -> Path:
    """Write the final files to a folder of ``partial``, whose shards stay until the corpus is in place."""
    complete = partial / "complete"
    shutil.rmtree(complete, ignore_errors=True)
    complete.mkdir()
    samples = paragraph_samples(sources, options, partial, state)
    codes = {name: code for code, name in enumerate(samples)}
    hashes = [read_document_hashes(partial, number) for _, number in state.shards]
    counts = {name: dict.fromkeys(("sentences", "indexed", "paragraphs", "single"), 0) for name in samples}
    with pa.ipc.new_file(str(complete / SENTENCES), SCHEMA) as file:
        for done, (domain, number) in enumerate(state.shards, start=1):
            batch, distinct, shard_counts = _final_batch(
                read_sentences(partial, number), samples[domain], seen, codes[domain]
            )
            file.write_batch(batch)
            hashes.append(distinct)
            for name, value in shard_counts.items():
                counts[domain][name] += value
            report("storing", done, len(state.shards))
    manifest = {
        "options": asdict(options),
        "documents": state.documents,
        "domains": [
            {"name": name, "paragraphs_read": state.paragraphs.get(name, 0), **c} for name, c in counts.items()
        ],
        "sources": [
            {"name": s.name, "domain": s.domain, "first_document": document, "first_shard": shard}
            | ({"text_column": s.text_column} if s.text_column else {})
            for s, document, shard in zip(sources, state.first_documents, state.first_shards, strict=True)
        ],
    }
    finish_corpus(complete, hashes, manifest)
    return complete


def _final_batch(
    table: pa.Table, sample: ParagraphSample, seen: SeenSentences, code: int
) -> tuple[pa.RecordBatch, pa.Table, dict[str, int]]:
    """Return the sentences of a shard as they are stored, the hashes of those that are new, and counts."""
    sampled = sample.keeps(table["priority"].to_numpy())
    if not sampled.all():
        table = table.filter(pa.array(sampled))
    texts = table["text"].to_pylist()
    hashes = np.fromiter((same_text_hash(text) for text in texts), dtype=np.uint64, count=len(texts))
    first = seen.first(hashes)
    distinct = pa.table([pa.array(hashes[first]), table["document"].filter(pa.array(first))], schema=HASHES)
    starts = table["position"].to_numpy() == 0
    single = starts & np.append(starts[1:], True) if len(starts) else starts
    columns = {
        "text": table["text"],
        "document": table["document"],
        "position": table["position"],
        "domain": pa.array(np.full(len(table), code, dtype=np.int16)),
        "indexed": pa.array(first),
    }
    batches = pa.table(columns, schema=SCHEMA).combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=SCHEMA)
    counts = {"indexed": first.sum(), "paragraphs": starts.sum(), "single": single.sum()}
    return batch, distinct, {"sentences": len(table), **{name: int(value) for name, value in counts.items()}}
