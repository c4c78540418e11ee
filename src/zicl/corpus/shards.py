"""Reading sources into shards of split paragraphs, with a note after each of how far it is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from zicl._util.files import write_json, writing
from zicl._util.progress import ProgressReport
from zicl.corpus.dedup import DocumentHashes
from zicl.corpus.reader import SourceReader
from zicl.corpus.sample import ParagraphSample
from zicl.corpus.sources import Source
from zicl.corpus.splitter import SplitMany, get_splitter, normalize_space, split_locally
from zicl.corpus.store import HASHES

if TYPE_CHECKING:
    pass

_SHARD_SENTENCES, _SHARD_BLOCKS = 1 << 16, 50_000
_SHARD = pa.schema({"text": pa.string(), "document": pa.int64(), "position": pa.int16(), "priority": pa.uint64()})


@dataclass
class BuildState:
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


@dataclass
class _CorpusShard:
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


def read_table(path: Path) -> pa.Table:
    """A file of a shard, memory-mapped."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def read_shards(
    sources: Sequence[Source],
    options: BuildOptions,
    partial: Path,
    state: BuildState,
    report: ProgressReport,
    split: SplitMany | None = None,
) -> None:
    """Read what ``state`` says is still to be read; blocks are split in turn, unless ``split`` does it elsewhere."""
    split = split or split_locally(get_splitter(options.splitter))
    samples = samples_of(sources, options, partial, state)
    total = sum(source.size for source in sources) or None
    begun, already = time.monotonic(), state.sentences

    def note() -> str:
        rate = (state.sentences - already) / max(time.monotonic() - begun, 1e-9)
        return f"{state.sentences:,} sentences, {rate:,.0f}/s"

    before = sum(source.size for source in sources[: state.source])
    while state.source < len(sources):
        source = sources[state.source]
        reader = SourceReader(source, options.text_column, options.lines, options.encoding)
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


def samples_of(
    sources: Sequence[Source], options: BuildOptions, partial: Path, state: BuildState
) -> dict[str, ParagraphSample]:
    """One sample a domain; what earlier shards hold is counted again when a build resumes."""
    names = dict.fromkeys(source.domain for source in sources)
    samples = {name: ParagraphSample(options.max_paragraphs, options.seed, name) for name in names}
    for domain, number in state.shards:
        table = read_table(partial / f"part-{number}.arrow")
        for priority in table["priority"].to_numpy()[table["position"].to_numpy() == 0].tolist():
            samples[domain].hold(priority)
    return samples


def _shards(
    reader: SourceReader, split: SplitMany, sample: ParagraphSample, state: BuildState
) -> Iterator[tuple[_CorpusShard, int, int]]:
    """Shards of one source from where ``state`` says, each with the blocks and documents done after it.

    A shard ends with a block; its last document may go on in the next one.
    """
    shard, blocks = _CorpusShard(), _BlockStream(reader, state.first_documents[state.source], state.blocks)
    done, documents = state.blocks, state.documents
    for parts in split(blocks.texts()):
        number, document, hashes = blocks.given.popleft()
        shard.hashes += hashes
        _take_blocks(parts, document, sample, shard, state, reader.source.domain)
        done, documents = number + 1, document + 1
        # Where the sample takes few, a shard also ends after so many blocks, and the progress is kept.
        if len(shard.texts) >= _SHARD_SENTENCES or done % _SHARD_BLOCKS == 0:
            yield shard, done, documents
            shard = _CorpusShard()
    # Counting one block beyond the last marks the source's last document as noted.
    if 0 < blocks.count >= done:
        shard.hashes += blocks.last()
        yield shard, blocks.count + 1, documents


class _BlockStream:
    """The blocks of a source on their way to the splitter, which may take many before it gives the first back.

    Those that are done only count for the hashes of the documents.
    """

    def __init__(self, reader: SourceReader, base: int, done: int) -> None:
        self._reader, self._base, self._done = reader, base, done
        self._hashes = DocumentHashes(grouped=reader.grouped)
        self.count = 0
        # Of each block given out: its number, its document, and the hashes of the documents that ended with it.
        self.given: deque[tuple[int, int, list[tuple[int, int]]]] = deque()

    def texts(self) -> Iterator[str]:
        for number, block in enumerate(self._reader.blocks()):
            tidied = normalize_space(block.text)
            finished = self._hashes.feed(block.record, block.group, tidied)
            self.count = number + 1
            if number >= self._done:
                self.given.append((number, self._base + block.record, self._known(finished)))
                yield tidied

    def last(self) -> list[tuple[int, int]]:
        return self._known(self._hashes.last())

    def _known(self, finished: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(digest, self._base + record) for record, digest in finished]


def _take_blocks(
    parts: list[list[str]], document: int, sample: ParagraphSample, shard: _CorpusShard, state: BuildState, domain: str
) -> None:
    for sentences in parts:
        number = state.paragraphs.get(domain, 0)
        state.paragraphs[domain] = number + 1
        priority = sample.offer(number)
        if priority is not None:
            shard.add(sentences, document, priority)


@dataclass(frozen=True)
class BuildOptions:
    """How raw text becomes a corpus."""

    max_paragraphs: int = 10_000_000
    seed: int = 0
    splitter: str = "sentencex"
    text_column: str = "text"
    lines: bool = False
    encoding: str = "utf-8-sig"
