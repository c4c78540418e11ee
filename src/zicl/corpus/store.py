"""The files of a corpus or an index, against what its manifest says of them."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zicl._util.files import file_hash, read_json
from zicl._util.registry import did_you_mean
from zicl.corpus.dedup import document_hash, same_text_hash
from zicl.corpus.subset import NO_REPLACEMENTS, CorpusSubset, DuplicateReplacements
from zicl.exceptions import CorpusDamagedError, CorpusMissingError, CorpusVersionError, StorageError, UsageError
from zicl.inputs.pair import Text

# Below this size opening a corpus checks the hashes, above it only the sizes ("zicl corpus info --verify").
_VERIFY_BELOW = 256 << 20


def check_files(folder: Path, files: dict[str, dict[str, Any]], *, verify: bool | None = None) -> None:
    """Compare files with what a manifest says of them, and name the one that differs."""
    small = sum(entry["bytes"] for entry in files.values()) < _VERIFY_BELOW
    for name, entry in files.items():
        path = folder / name
        problem = None
        if not path.is_file():
            problem = "is missing"
        elif path.stat().st_size != entry["bytes"]:
            problem = f"has {path.stat().st_size:,} bytes instead of {entry['bytes']:,}"
        elif (small if verify is None else verify) and file_hash(path) != entry["sha256"]:
            problem = "has other contents than when it was written"
        if problem:
            raise CorpusDamagedError(
                f"{path} {problem}", hint="copy the folder again from its source, or build it anew"
            )


def describe_files(folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Size and hash of files, for a manifest."""
    return {n: {"bytes": (folder / n).stat().st_size, "sha256": file_hash(folder / n)} for n in names}


# -- A corpus on disk: one folder, memory-mapped, with a manifest that is written last.


FORMAT = 1
SENTENCES, TEXTS, MANIFEST = "sentences.arrow", "texts.arrow", "manifest.json"
SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "document": pa.int64(),
        "position": pa.int16(),
        "domain": pa.int16(),
        "indexed": pa.bool_(),
    }
)
HASHES = pa.schema({"hash": pa.uint64(), "document": pa.int64()})


@dataclass(frozen=True)
class Sentence:
    """A sentence and its place in the corpus; of a training example, its text or pair."""

    row: int
    text: Text
    document: int
    position: int
    domain: str
    source: str


class Corpus:
    """The sentences of a corpus in their order, or a part of them. Opening it reads no text.

    Rows keep their numbers in a part. A handle: deep copies are the corpus itself.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], part: CorpusSubset | None = None) -> None:
        self.path, self.manifest = path, manifest
        self.part = part or CorpusSubset(removed_domains(manifest))
        # Both at once: the folder may be replaced by a changed corpus while this one is in use.
        self.table: pa.Table = _map(path / SENTENCES)
        self.known_texts: pa.Table = _map(path / TEXTS)
        self._names: list[str] = [domain["name"] for domain in manifest["domains"]]
        self.domains = [name for name in self._names if name not in self.part.without]

    @classmethod
    def open(cls, path: str | Path, *, verify: bool | None = None) -> Corpus:
        """Open a finished corpus; ``verify`` checks the hashes of its files (by default of small ones)."""
        folder = Path(path)
        manifest = read_manifest(folder)
        check_files(folder, manifest["files"], verify=verify)
        return cls(folder, manifest)

    def __deepcopy__(self, memo: dict[int, object]) -> Corpus:
        return self

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def hash(self) -> str:
        """Identifies the text that is used: the hash of the sentences file, and of what is left out of it."""
        return self.part.key(self.text_hash)

    @property
    def text_hash(self) -> str:
        """The hash of the sentences file."""
        return str(self.manifest["files"][SENTENCES]["sha256"])

    @property
    def document_ids(self) -> int:
        """One more than the largest number a document may have."""
        return int(self.manifest.get("document_ids", self.manifest["documents"]))

    @property
    def sentences(self) -> int:
        """How many sentences are in use."""
        return len(self) if self.part.whole else int(np.sum(self.used))

    @property
    def as_stored(self) -> bool:
        """Whether this is what opening the folder gives, not a part of it that was made in memory."""
        return self.part == CorpusSubset(removed_domains(self.manifest))

    def only(self, part: CorpusSubset) -> Corpus:
        """A part of this corpus."""
        return Corpus(self.path, self.manifest, part)

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """For each row whether it is in use."""
        if self.part.whole:
            return np.ones(len(self), dtype=bool)
        return self.part.rows(self._names, self.table["domain"].to_numpy(), self.table["position"].to_numpy())

    @cached_property
    def stand_ins(self) -> DuplicateReplacements:
        """The sentences that are indexed because the first one with their text is left out."""
        if self.part.whole:
            return NO_REPLACEMENTS
        first, used = self.table["indexed"].to_numpy(), self.used
        rows = np.flatnonzero(used & ~first)
        hashes = self.text_hashes(rows)
        # Only documents that are known for one of these texts can hold the first sentence with it.
        documents = self.known_texts["document"].to_numpy()[np.isin(self._hashes, hashes)]
        left_out = np.flatnonzero(~used & first)
        left_out = left_out[np.isin(self.table["document"].to_numpy()[left_out], documents)]
        return DuplicateReplacements.match(hashes, rows, self.text_hashes(left_out), left_out)

    def text_hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The hashes by which texts are known to be the same."""
        return np.fromiter(map(same_text_hash, self.texts(rows.tolist())), dtype=np.uint64, count=len(rows))

    @cached_property
    def indexed(self) -> NDArray[np.int64]:
        """All rows to be searched: the first of each text."""
        first = self.table["indexed"].to_numpy()
        if self.part.whole:
            return np.flatnonzero(first)
        return np.union1d(np.flatnonzero(first & self.used), self.stand_ins.rows)

    @property
    def accompanied(self) -> int:
        """How many sentences have a neighbour in their paragraph; of equal ones each counts."""
        inside = self.table["position"].to_numpy() > 0
        return int(((inside | np.append(inside[1:], False)) & self.used).sum())

    def text(self, row: int) -> str:
        """The text of one row."""
        return str(self.table["text"][row].as_py())

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The texts of some rows."""
        # Chunk by chunk: taking from the whole column would copy all of it each time.
        wanted, found = np.asarray(rows, dtype=np.int64), [""] * len(rows)
        chunk_of = np.searchsorted(self._chunk_starts, wanted, side="right") - 1
        for number in np.unique(chunk_of).tolist():
            places = np.flatnonzero(chunk_of == number)
            taken = self.table["text"].chunk(number).take(pa.array(wanted[places] - self._chunk_starts[number]))
            for place, text in zip(places.tolist(), taken.to_pylist(), strict=True):
                found[place] = text
        return found

    @cached_property
    def _chunk_starts(self) -> NDArray[np.int64]:
        lengths = [len(chunk) for chunk in self.table["text"].chunks]
        return np.cumsum([0, *lengths[:-1]])

    def document(self, row: int) -> int:
        """The document a row belongs to."""
        return int(self.table["document"][row].as_py())

    def domain(self, row: int) -> str:
        """The domain a row belongs to."""
        return self._names[int(self.table["domain"][row].as_py())]

    def sentence(self, row: int) -> Sentence:
        """A row with all that is known of it."""
        if not 0 <= row < len(self):
            raise UsageError(f"there is no sentence {row}", hint=f"the corpus has the ids 0 to {len(self) - 1}")
        if not (self.part.whole or self.used[row]):
            raise UsageError(f"sentence {row} ({self.domain(row)}) is left out of this corpus", hint="ask for another")
        document = self.document(row)
        position = int(self.table["position"][row].as_py())
        return Sentence(row, self.text(row), document, position, self.domain(row), self._source(document)["name"])

    @cached_property
    def _first_documents(self) -> list[int]:
        return [source["first_document"] for source in self.manifest["sources"]]

    def neighbour(self, row: int) -> int | None:
        """The row beside ``row`` in its paragraph: the previous one, else the next, else None."""
        if self.table["position"][row].as_py() > 0:
            return row - 1
        if row + 1 < len(self) and self.table["position"][row + 1].as_py() > 0:
            return row + 1
        return None

    def around(self, row: int, reach: int) -> list[int]:
        """The rows of its paragraph at most ``reach`` away, without itself."""
        first = row - min(reach, int(self.table["position"][row].as_py()))
        last = row
        while last < row + reach and last + 1 < len(self) and self.table["position"][last + 1].as_py() > 0:
            last += 1
        return [other for other in range(first, last + 1) if other != row]

    def paragraph(self, row: int) -> list[Sentence]:
        """All sentences of the paragraph that ``row`` stands in."""
        first = row - self.sentence(row).position
        last = row
        while last + 1 < len(self) and self.table["position"][last + 1].as_py() > 0:
            last += 1
        return [self.sentence(index) for index in range(first, last + 1)]

    def used_texts(self) -> Iterator[str]:
        """The texts of all sentences in use, in their order."""
        row = 0
        for chunk in self.table["text"].chunks:
            kept = chunk if self.part.whole else chunk.filter(pa.array(self.used[row : row + len(chunk)]))
            row += len(chunk)
            yield from (text.as_py() for text in kept)

    def domain_rows(self, domain: str) -> NDArray[np.int64]:
        """All indexed rows of a domain."""
        if domain not in self.domains:
            raise did_you_mean("domain", domain, self.domains)
        return self._rows_by_domain[self._names.index(domain)]

    @cached_property
    def _rows_by_domain(self) -> list[NDArray[np.int64]]:
        codes = self.table["domain"].to_numpy()[self.indexed]
        return [self.indexed[codes == code] for code in range(len(self._names))]

    def documents_like(self, text: str) -> set[int]:
        """The document whose whole text is ``text``, and the first one in which it stands as a sentence."""
        digest = document_hash(text)
        first, last = (int(np.searchsorted(self._hashes, np.uint64(digest), side)) for side in ("left", "right"))
        found = set(self.known_texts["document"].slice(first, last - first).to_pylist())
        if self.part.whole or not found:
            return found
        kept = {document for document in found if self._source(document)["domain"] in self.domains}
        row = self.stand_ins.row_of(digest)
        return kept if row is None else kept | {self.document(row)}

    def _source(self, document: int) -> dict[str, Any]:
        source: dict[str, Any] = self.manifest["sources"][bisect.bisect_right(self._first_documents, document) - 1]
        return source

    @cached_property
    def _hashes(self) -> NDArray[np.uint64]:
        return np.asarray(self.known_texts["hash"].to_numpy())


def _map(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def sorted_domains(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables of hashes as one, sorted."""
    return pa.concat_tables(tables).sort_by([("hash", "ascending"), ("document", "ascending")]).combine_chunks()


def totals(domains: Sequence[dict[str, Any]]) -> dict[str, int]:
    """What the domains of a manifest hold together, without those that were removed."""
    left = [domain for domain in domains if not domain.get("removed")]
    return {name: sum(d[name] for d in left) for name in ("sentences", "indexed", "paragraphs", "single")}


def removed_domains(manifest: dict[str, Any]) -> tuple[str, ...]:
    """The domains that were removed and are still on disk."""
    return tuple(domain["name"] for domain in manifest["domains"] if domain.get("removed"))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished corpus, or an error that says what is wrong with the folder."""
    if not (folder / MANIFEST).is_file():
        if folder.is_dir():
            raise CorpusMissingError(
                f"{folder} is not a finished corpus: it has no {MANIFEST}",
                hint="build one: zicl corpus build -o reviews.zicl reviews/*.txt",
            )
        raise CorpusMissingError(f"there is no corpus {folder}", hint="zicl corpus build -o reviews.zicl reviews/*.txt")
    try:
        manifest: dict[str, Any] = read_json(folder / MANIFEST)
        version = manifest["format"]
    except (StorageError, KeyError, TypeError) as error:
        raise CorpusDamagedError(f"{folder / MANIFEST} is damaged: {error}", hint="build the corpus again") from error
    if version != FORMAT:
        raise CorpusVersionError(
            f"{folder} has format {version}; this version of zicl reads format {FORMAT}",
            hint="build the corpus again, or install the version of zicl that wrote it "
            f"({manifest.get('zicl', 'unknown')})",
        )
    return manifest
