"""Read sources into shards of split paragraphs, and record the progress after each: a killed build resumes there."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from zicl._util.counts import counted
from zicl._util.files import atomic_write, write_json
from zicl._util.progress import ProgressReport
from zicl.corpus.dedup import DocumentHashes
from zicl.corpus.reader import SourceReader
from zicl.corpus.sample import ParagraphSample
from zicl.corpus.sources import Source
from zicl.corpus.splitter import SplitMany, get_splitter, normalize_space, split_locally
from zicl.corpus.store import HASHES, map_table

STATE = "state.json"
_SHARD_SENTENCES, _SHARD_BLOCKS = 1 << 16, 50_000
_SCHEMA = pa.schema({"text": pa.string(), "document": pa.int64(), "position": pa.int16(), "priority": pa.uint64()})
_LAST_POSITION = np.iinfo(np.int16).max


@dataclass(frozen=True)
class BuildOptions:
    """How raw text becomes a corpus."""

    # The maximum number of paragraphs per domain; more are sampled with the seed.
    max_paragraphs: int = 10_000_000
    seed: int = 0
    # A name of ``zicl.corpus.splitter``, or of an installed plug-in.
    splitter: str = "sentencex"
    # The column or key of the text in .jsonl, .csv and .parquet files, and data sets.
    text_column: str = "text"
    # Every line of a .txt file is a document.
    lines: bool = False
    encoding: str = "utf-8-sig"
    # Other maximum numbers of paragraphs, by domain.
    domain_paragraphs: dict[str, int] = field(default_factory=dict)

    def limit(self, domain: str) -> int:
        """Return the maximum number of paragraphs of a domain.

        >>> BuildOptions(2000, domain_paragraphs={"tweets": 50_000}).limit("tweets")
        50000
        """
        return self.domain_paragraphs.get(domain, self.max_paragraphs)


@dataclass
class BuildState:
    """The progress of reading, stored as ``state.json`` after every shard."""

    # Identifies the build (``builder.build_key``).
    key: str
    # The source that is being read, and the number of its blocks that are in shards.
    source: int = 0
    blocks: int = 0
    documents: int = 0
    # The number of paragraphs per domain, before sampling.
    paragraphs: dict[str, int] = field(default_factory=dict)
    # The domain and number of each shard.
    shards: list[tuple[str, str]] = field(default_factory=list)
    # The first document and the first shard of each source.
    first_documents: list[int] = field(default_factory=list)
    first_shards: list[int] = field(default_factory=list)
    sentences: int = 0


def write_shards(
    sources: Sequence[Source],
    options: BuildOptions,
    folder: Path,
    state: BuildState,
    report: ProgressReport,
    split: SplitMany | None = None,
) -> None:
    """Read everything that ``state`` does not record yet; ``split`` replaces the splitter of the options."""
    split = split or split_locally(get_splitter(options.splitter))
    samples = paragraph_samples(sources, options, folder, state)
    total = sum(source.size for source in sources) or None
    started, sentences_before = time.monotonic(), state.sentences

    def note() -> str:
        rate = (state.sentences - sentences_before) / max(time.monotonic() - started, 1e-9)
        return f"{counted(state.sentences, 'sentence')}, {rate:,.0f}/s"

    bytes_before = sum(source.size for source in sources[: state.source])
    while state.source < len(sources):
        source = sources[state.source]
        reader = SourceReader(source, source.text_column or options.text_column, options.lines, options.encoding)
        if len(state.first_documents) == state.source:
            state.first_documents.append(state.documents)
            state.first_shards.append(len(state.shards))
        for shard, blocks, documents in _shards(reader, split, samples[source.domain], state):
            number = f"{len(state.shards):05d}"
            shard.write(folder, number)
            state.shards.append((source.domain, number))
            state.sentences += len(shard.texts)
            state.blocks, state.documents = blocks, documents
            write_json(folder / STATE, asdict(state))
            report("reading", bytes_before + reader.consumed, total, note())
        bytes_before += source.size
        state.source, state.blocks = state.source + 1, 0
        report("reading", bytes_before, total, note())
    write_json(folder / STATE, asdict(state))


def paragraph_samples(
    sources: Sequence[Source], options: BuildOptions, folder: Path, state: BuildState
) -> dict[str, ParagraphSample]:
    """Return one sample per domain, with the paragraphs of the existing shards."""
    names = dict.fromkeys(source.domain for source in sources)
    samples = {name: ParagraphSample(options.limit(name), options.seed, name) for name in names}
    for domain, number in state.shards:
        table = read_sentences(folder, number)
        for priority in table["priority"].to_numpy()[table["position"].to_numpy() == 0].tolist():
            samples[domain].add(priority)
    return samples


def read_sentences(folder: Path, number: str) -> pa.Table:
    """Return the sentences of a shard, with the priority of their paragraph in the sample."""
    return map_table(folder / f"part-{number}.arrow", _SCHEMA)


def read_document_hashes(folder: Path, number: str) -> pa.Table:
    """Return the hashes of the documents that end in a shard."""
    return map_table(folder / f"hashes-{number}.arrow", HASHES)


@dataclass
class _CorpusShard:
    """Sentences, the length, document and priority of each of their paragraphs, and hashes of documents."""

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

    def write(self, folder: Path, number: str) -> None:
        lengths = np.array(self.lengths, dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        # Only whether it is the first counts beyond the largest number that the column holds.
        positions = np.minimum(np.arange(len(self.texts)) - np.repeat(starts, lengths), _LAST_POSITION).astype(np.int16)
        documents = np.repeat(np.array(self.documents, dtype=np.int64), lengths)
        priorities = np.repeat(np.array(self.priorities, dtype=np.uint64), lengths)
        _write(folder / f"hashes-{number}.arrow", HASHES, list(zip(*self.hashes, strict=True)) or [(), ()])
        _write(folder / f"part-{number}.arrow", _SCHEMA, (self.texts, documents, positions, priorities))


def _write(path: Path, schema: pa.Schema, columns: Sequence[Any]) -> None:
    arrays = [pa.array(values, type=kind) for values, kind in zip(columns, schema.types, strict=True)]
    with atomic_write(path) as temporary, pa.ipc.new_file(str(temporary), schema) as file:
        file.write_batch(pa.record_batch(arrays, schema=schema))


def _shards(
    reader: SourceReader, split: SplitMany, sample: ParagraphSample, state: BuildState
) -> Iterator[tuple[_CorpusShard, int, int]]:
    """Yield the remaining shards of one source, each with the number of blocks and documents after it.

    A shard ends with a block; its last document may continue in the next shard.
    """
    domain = reader.source.domain
    shard, stream = _CorpusShard(), _BlockStream(reader, state.first_documents[state.source], state.blocks)
    done, documents = state.blocks, state.documents
    for paragraphs in split(stream.texts()):
        number, document, hashes = stream.pending.popleft()
        shard.hashes += hashes
        for sentences in paragraphs:
            paragraph = state.paragraphs.get(domain, 0)
            state.paragraphs[domain] = paragraph + 1
            if (priority := sample.offer(paragraph)) is not None:
                shard.add(sentences, document, priority)
        done, documents = number + 1, document + 1
        # The second limit saves the progress also while the sample accepts few paragraphs.
        if len(shard.texts) >= _SHARD_SENTENCES or done % _SHARD_BLOCKS == 0:
            yield shard, done, documents
            shard = _CorpusShard()
    # One more than the number of blocks records that the hashes of the last document are written.
    if 0 < stream.count >= done:
        shard.hashes += stream.last_hashes()
        yield shard, stream.count + 1, documents


class _BlockStream:
    """The blocks of a source on their way to the splitter, which may take many before it returns the first.

    The first ``done`` blocks are in shards already, and are only read for the hashes of the documents.
    """

    def __init__(self, reader: SourceReader, first_document: int, done: int) -> None:
        self._reader, self._first_document, self._done = reader, first_document, done
        self._hashes = DocumentHashes(grouped=reader.grouped)
        self.count = 0
        # For each block that the splitter has: its number, its document, and the hashes of documents that ended there.
        self.pending: deque[tuple[int, int, list[tuple[int, int]]]] = deque()

    def texts(self) -> Iterator[str]:
        for number, block in enumerate(self._reader.blocks()):
            text = normalize_space(block.text)
            hashes = self._hash_rows(self._hashes.feed(block.record, block.group, text))
            self.count = number + 1
            if number >= self._done:
                self.pending.append((number, self._first_document + block.record, hashes))
                yield text

    def last_hashes(self) -> list[tuple[int, int]]:
        return self._hash_rows(self._hashes.last())

    def _hash_rows(self, finished: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(digest, self._first_document + record) for record, digest in finished]
