"""Building a corpus: read → split → sample → deduplicate → store, streaming and resumable.

Two steps. *Reading* writes shards of split paragraphs and notes after each how far it is, so that a
killed build goes on from its last shard. *Finishing* drops what the sample left out, marks duplicates
and writes the final files; it is quick and starts over if it is killed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from zicl import __version__
from zicl._files import empty, locked, move_in, read_json, storage_errors, write_json, write_text, writing
from zicl._progress import Report, silent
from zicl._random import stable_hash
from zicl.corpus.dedup import Seen
from zicl.corpus.documents import DocumentHashes, same_text_hash
from zicl.corpus.files import describe_files
from zicl.corpus.paragraphs import paragraphs, tidy
from zicl.corpus.read import Reader
from zicl.corpus.sample import BottomSample
from zicl.corpus.sources import Source
from zicl.corpus.split import Splitter, get_splitter
from zicl.corpus.store import FORMAT, HASHES, MANIFEST, SCHEMA, SENTENCES, TEXTS, Corpus, in_order, totals
from zicl.exceptions import EmptyCorpusError, StorageError, UsageError

_SHARD_SENTENCES, _SHARD_BLOCKS = 1 << 16, 50_000
_SHARD = pa.schema({"text": pa.string(), "document": pa.int64(), "position": pa.int16(), "priority": pa.uint64()})


@dataclass(frozen=True)
class BuildOptions:
    """How raw text becomes a corpus."""

    max_paragraphs: int = 10_000_000
    seed: int = 0
    splitter: str = "sentencex"
    text_column: str = "text"
    lines: bool = False
    encoding: str = "utf-8-sig"


_DEFAULTS = BuildOptions()
# A file beside the manifest that says which build wrote it; it depends on paths and times, the rest does not.
BUILD_KEY = "build.key"


@dataclass
class _State:
    """How far reading is: kept in state.json after every shard."""

    key: str
    source: int = 0
    blocks: int = 0
    documents: int = 0
    paragraphs: dict[str, int] = field(default_factory=dict)
    shards: list[tuple[str, str]] = field(default_factory=list)
    first_documents: list[int] = field(default_factory=list)
    first_shards: list[int] = field(default_factory=list)
    sentences: int = 0


def build_corpus(
    sources: Sequence[Source],
    output: str | Path,
    options: BuildOptions = _DEFAULTS,
    *,
    overwrite: bool = False,
    seen: Seen | None = None,
    report: Report = silent,
) -> Corpus:
    """Build the corpus ``output`` from ``sources``; a build that was killed goes on where it was.

    Sentences that were ``seen`` before, in the corpus this one is to follow, are stored but not indexed.
    """
    target = Path(output)
    if options.max_paragraphs < 1:
        raise UsageError(f"max_paragraphs is {options.max_paragraphs}; expected at least 1")
    if target.exists() and not overwrite:
        raise StorageError(f"{target} exists already", hint="choose another name with -o, or pass --overwrite")
    partial = target.with_name(target.name + ".partial")
    can_resume = all(source.path != "-" for source in sources)
    with locked(partial, f"{target} is being built by another process"):
        state = _resume(partial, build_key(sources, options), can_resume=can_resume)
        _read(sources, options, partial, state, report)
        if state.sentences == 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise EmptyCorpusError(
                "no sentence was found in " + ", ".join(source.name for source in sources[:5]),
                hint="check that the files hold text, and --text-column for .jsonl, .csv and .parquet",
            )
        with storage_errors(partial):
            whole = _finish(sources, options, partial, state, seen or Seen(), report)
            move_in(whole, target)
        shutil.rmtree(partial, ignore_errors=True)
    return Corpus.open(target, verify=False)


def build_key(sources: Sequence[Source], options: BuildOptions) -> str:
    """Identifies a build: its sources as they are now, and its options."""
    stamps = [(s.path, s.domain, s.format, s.size, os.stat(s.path).st_mtime_ns if s.is_file else 0) for s in sources]
    return f"{stable_hash(FORMAT, __version__, repr(stamps), repr(asdict(options))):032x}"


def _resume(partial: Path, key: str, *, can_resume: bool) -> _State:
    """The state of a killed build of the same sources, or a fresh one."""
    note = partial / "state.json"
    if note.is_file() and can_resume:
        content = read_json(note)
        if content.get("key") == key and "first_shards" in content:
            return _State(**content)
    # Another build, or standard input, which cannot be read twice: nothing of it can be used.
    empty(partial)
    return _State(key)


# -- reading --------------------------------------------------------------------------------------


@dataclass
class _Shard:
    """Sentences, and for every paragraph of them its length, document and priority."""

    texts: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    priorities: list[int] = field(default_factory=list)
    hashes: list[tuple[int, int]] = field(default_factory=list)

    def add(self, sentences: list[str], document: int, priority: int) -> None:
        self.texts += sentences
        self.lengths.append(len(sentences))
        self.documents.append(document)
        self.priorities.append(priority)

    def write(self, folder: Path, name: str) -> None:
        lengths = np.array(self.lengths, dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        positions = np.arange(len(self.texts)) - np.repeat(starts, lengths)
        documents = np.repeat(np.array(self.documents, dtype=np.int64), lengths)
        priorities = np.repeat(np.array(self.priorities, dtype=np.uint64), lengths)
        _write(folder / f"hashes-{name}.arrow", HASHES, list(zip(*self.hashes, strict=True)) or [(), ()])
        _write(folder / f"part-{name}.arrow", _SHARD, (self.texts, documents, positions.astype(np.int16), priorities))


def _write(path: Path, schema: pa.Schema, columns: Sequence[Any]) -> None:
    arrays = [pa.array(values, type=kind) for values, kind in zip(columns, schema.types, strict=True)]
    with writing(path) as temporary, pa.ipc.new_file(str(temporary), schema) as file:
        file.write_batch(pa.record_batch(arrays, schema=schema))


def _table(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _read(sources: Sequence[Source], options: BuildOptions, partial: Path, state: _State, report: Report) -> None:
    split = get_splitter(options.splitter)
    samples = _samples(sources, options, partial, state)
    total = sum(source.size for source in sources) or None
    begun, already = time.monotonic(), state.sentences

    def note() -> str:
        rate = (state.sentences - already) / max(time.monotonic() - begun, 1e-9)
        return f"{state.sentences:,} sentences, {rate:,.0f}/s"

    before = sum(source.size for source in sources[: state.source])
    while state.source < len(sources):
        source = sources[state.source]
        reader = Reader(source, options.text_column, options.lines, options.encoding)
        if len(state.first_documents) == state.source:
            state.first_documents.append(state.documents)
            state.first_shards.append(len(state.shards))
        for shard, blocks, documents in _shards(reader, split, samples[source.domain], state):
            number = f"{len(state.shards):05d}"
            shard.write(partial, number)
            state.shards.append((source.domain, number))
            state.sentences += len(shard.texts)
            state.blocks, state.documents = blocks, documents
            write_json(partial / "state.json", asdict(state))
            report("reading", before + reader.consumed, total, note())
        before += source.size
        state.source, state.blocks = state.source + 1, 0
        report("reading", before, total, note())
    write_json(partial / "state.json", asdict(state))


def _samples(sources: Sequence[Source], options: BuildOptions, partial: Path, state: _State) -> dict[str, BottomSample]:
    """One sample a domain; what earlier shards hold is counted again when a build resumes."""
    names = dict.fromkeys(source.domain for source in sources)
    samples = {name: BottomSample(options.max_paragraphs, options.seed, name) for name in names}
    for domain, number in state.shards:
        table = _table(partial / f"part-{number}.arrow")
        for priority in table["priority"].to_numpy()[table["position"].to_numpy() == 0].tolist():
            samples[domain].hold(priority)
    return samples


def _shards(reader: Reader, split: Splitter, sample: BottomSample, state: _State) -> Iterator[tuple[_Shard, int, int]]:
    """Shards of one source from where ``state`` says, each with the blocks and documents done after it.

    A shard ends with a block; its last document may go on in the next one.
    """
    shard, hashes, base, documents = (
        _Shard(),
        DocumentHashes(grouped=reader.grouped),
        state.first_documents[state.source],
        state.documents,
    )
    done, number = state.blocks, -1
    for number, block in enumerate(reader.blocks()):
        tidied = tidy(block.text)
        finished = hashes.feed(block.record, block.group, tidied)
        if number < done:
            continue
        shard.hashes += [(digest, base + record) for record, digest in finished]
        _take(tidied, base + block.record, split, sample, shard, state, reader.source.domain)
        done, documents = number + 1, base + block.record + 1
        # Where the sample takes few, a shard also ends after so many blocks, and the progress is kept.
        if len(shard.texts) >= _SHARD_SENTENCES or (number + 1) % _SHARD_BLOCKS == 0:
            yield shard, done, documents
            shard = _Shard()
    # Counting one block beyond the last marks the source's last document as noted.
    if number >= 0 and done <= number + 1:
        shard.hashes += [(digest, base + record) for record, digest in hashes.last()]
        yield shard, number + 2, documents


def _take(
    tidied: str,
    document: int,
    split: Splitter,
    sample: BottomSample,
    shard: _Shard,
    state: _State,
    domain: str,
) -> None:
    for sentences in paragraphs(tidied, split):
        number = state.paragraphs.get(domain, 0)
        state.paragraphs[domain] = number + 1
        priority = sample.offer(number)
        if priority is not None:
            shard.add(sentences, document, priority)


# -- finishing ------------------------------------------------------------------------------------


def _finish(
    sources: Sequence[Source], options: BuildOptions, partial: Path, state: _State, seen: Seen, report: Report
) -> Path:
    """Write the final files, the manifest last, to a folder of their own; the shards stay until it is in place."""
    whole = partial / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    whole.mkdir()
    samples = _samples(sources, options, partial, state)
    codes = {name: code for code, name in enumerate(samples)}
    hashes = [_table(partial / f"hashes-{number}.arrow") for _, number in state.shards]
    counts = {name: dict.fromkeys(("sentences", "indexed", "paragraphs", "single"), 0) for name in samples}
    with pa.ipc.new_file(str(whole / SENTENCES), SCHEMA) as file:
        for done, (domain, number) in enumerate(state.shards, start=1):
            batch, distinct, shard_counts = _final_batch(
                _table(partial / f"part-{number}.arrow"), samples[domain], seen, codes[domain]
            )
            file.write_batch(batch)
            hashes.append(distinct)
            for name, value in shard_counts.items():
                counts[domain][name] += value
            report("storing", done, len(state.shards))
    with pa.ipc.new_file(str(whole / TEXTS), HASHES) as file:
        file.write_table(in_order(hashes))
    write_text(whole / BUILD_KEY, state.key + "\n")
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
    state: _State,
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
