"""A corpus on disk: one folder of Arrow files, opened as a memory map.

reviews.zicl/
  sentences.arrow    every sentence in order, with its document, position in the paragraph, domain, and whether it is
                     indexed: of equal sentences only the first is
  texts.arrow        the hashes of documents and distinct sentences, to find documents by their text
  manifest.json      domains, sources, counts, sizes and hashes of the files; written last
  index/             vectors (zicl.retrieve)
"""

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

from zicl._util.files import check_inside, file_hash, write_json
from zicl._util.process import __version__
from zicl._util.registry import did_you_mean
from zicl.corpus.dedup import document_hash, same_text_hash
from zicl.corpus.manifest import AGAIN, FORMAT, MANIFEST, SENTENCES, TEXTS, read_manifest
from zicl.corpus.subset import NO_REPLACEMENTS, CorpusSubset, DuplicateReplacements
from zicl.exceptions import CorpusDamagedError, UsageError, first_line
from zicl.inputs.pair import Text

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
# Opening a corpus checks the hashes of smaller files, and only the sizes of larger ones (zicl corpus info --verify).
_VERIFY_BELOW = 256 << 20


@dataclass(frozen=True)
class Sentence:
    """A sentence and its place in the corpus; ``text`` is a pair only for training examples."""

    row: int
    text: Text
    document: int
    position: int
    domain: str
    source: str


class Corpus:
    """The sentences of a corpus in order, or a subset of them, which keep their row numbers.

    Opening it reads no text; a deep copy is the same object.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], subset: CorpusSubset | None = None) -> None:
        self.path, self.manifest = path, manifest
        self.subset = subset or CorpusSubset(removed_domains(manifest))
        # Both are opened now: the folder may be replaced by a changed corpus while this one is in use.
        self.table: pa.Table = map_table(path / SENTENCES, SCHEMA)
        self.hash_table: pa.Table = map_table(path / TEXTS, HASHES)
        self._names: list[str] = [domain["name"] for domain in manifest["domains"]]
        self.domains = [name for name in self._names if name not in self.subset.without]
        self._streams: dict[str, NDArray[np.int64]] = {}

    @classmethod
    def open(cls, path: str | Path, *, verify: bool | None = None) -> Corpus:
        """Open a finished corpus; ``verify`` checks the hashes of its files (by default of small ones)."""
        folder = Path(path)
        manifest = read_manifest(folder)
        every_byte = check_files(folder, manifest["files"], verify=verify)
        corpus = cls(folder, manifest)
        corpus.check_number_of_rows()
        if every_byte:
            check_rows(corpus)
        if verify:
            corpus.check_counts()
        return corpus

    def __deepcopy__(self, memo: dict[int, object]) -> Corpus:
        return self

    def check_number_of_rows(self) -> None:
        """Check the counts of the manifest as far as that takes no reading of rows."""
        stored = sum(domain["sentences"] for domain in self.manifest["domains"])
        if stored != len(self):
            raise self._miscounted("the corpus", "sentences", stored, len(self))

    def check_counts(self) -> None:
        """Check the counts of the manifest against the sentences themselves, domain by domain."""
        domains, starts = self.table["domain"].to_numpy(), self.table["position"].to_numpy() == 0
        single = starts & np.append(starts[1:], True)
        counted = {"sentences": slice(None), "paragraphs": starts, "single": single}
        found = {key: np.bincount(domains[rows], minlength=len(self._names)) for key, rows in counted.items()}
        for number, domain in enumerate(self.manifest["domains"]):
            counts = {key: int(found[key][number]) for key in counted}
            if not domain.get("removed"):
                counts["indexed"] = len(self.domain_rows(domain["name"]))
            for key, count in counts.items():
                if domain[key] != count:
                    raise self._miscounted(repr(domain["name"]), key, domain[key], count)

    def _miscounted(self, what: str, key: str, said: int, found: int) -> CorpusDamagedError:
        return CorpusDamagedError(
            f"{self.path / MANIFEST} says that {what} has {said:,} {key}, and there are {found:,}", hint=AGAIN
        )

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def hash(self) -> str:
        """Identifies the text in use: the hash of the sentences file, and of what is left out of it."""
        return self.subset.identity(self.text_hash)

    @property
    def text_hash(self) -> str:
        """The hash of the sentences file."""
        return str(self.manifest["files"][SENTENCES]["sha256"])

    @property
    def document_ids(self) -> int:
        """The largest document number plus one; removed domains keep their numbers."""
        return int(self.manifest.get("document_ids", self.manifest["documents"]))

    @property
    def sentences(self) -> int:
        """The number of sentences in use."""
        return len(self) if self.subset.is_everything else int(np.sum(self.used))

    @property
    def as_stored(self) -> bool:
        """Whether it is what opening the folder gives, not a subset that was made in memory."""
        return self.subset == CorpusSubset(removed_domains(self.manifest))

    def only(self, subset: CorpusSubset) -> Corpus:
        """Return a subset of this corpus."""
        return Corpus(self.path, self.manifest, subset)

    # -- rows in use -------------------------------------------------------------------------------------

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Whether each row is in use."""
        if self.subset.is_everything:
            return np.ones(len(self), dtype=bool)
        return self.subset.mask(self._names, self.table["domain"].to_numpy(), self.table["position"].to_numpy())

    @cached_property
    def indexed(self) -> NDArray[np.int64]:
        """The rows to search: the first sentence in use with each text."""
        first = self.table["indexed"].to_numpy()
        if self.subset.is_everything:
            return np.flatnonzero(first)
        return np.union1d(np.flatnonzero(first & self.used), self.replacements.rows)

    @cached_property
    def replacements(self) -> DuplicateReplacements:
        """The rows that are indexed because the first one with their text is left out."""
        if self.subset.is_everything:
            return NO_REPLACEMENTS
        first, used = self.table["indexed"].to_numpy(), self.used
        rows = np.flatnonzero(used & ~first)
        hashes = self.text_hashes(rows)
        # To hash few texts, look only at documents that have the hash of one of these duplicates.
        documents = self.hash_table["document"].to_numpy()[np.isin(self._hashes, hashes)]
        left_out = np.flatnonzero(~used & first)
        left_out = left_out[np.isin(self.table["document"].to_numpy()[left_out], documents)]
        return DuplicateReplacements.match(hashes, rows, self.text_hashes(left_out), left_out)

    def domain_rows(self, domain: str) -> NDArray[np.int64]:
        """Return all indexed rows of a domain."""
        if domain not in self.domains:
            raise did_you_mean("domain", domain, self.domains)
        return self._rows_by_domain[self._names.index(domain)]

    @cached_property
    def _rows_by_domain(self) -> list[NDArray[np.int64]]:
        codes = self.table["domain"].to_numpy()[self.indexed]
        return [self.indexed[codes == code] for code in range(len(self._names))]

    @property
    def accompanied(self) -> int:
        """The number of sentences with a neighbour in their paragraph, duplicates included."""
        inside = self.table["position"].to_numpy() > 0
        return int(((inside | np.append(inside[1:], False)) & self.used).sum())

    # -- sentences by row --------------------------------------------------------------------------------

    def text(self, row: int) -> str:
        """Return the text of one row."""
        return str(self.table["text"][row].as_py())

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the texts of some rows."""
        # Chunk by chunk: Table.take would copy the complete column each time.
        wanted, texts = np.asarray(rows, dtype=np.int64), [""] * len(rows)
        chunks = np.searchsorted(self._chunk_starts, wanted, side="right") - 1
        for number in np.unique(chunks).tolist():
            places = np.flatnonzero(chunks == number)
            taken = self.table["text"].chunk(number).take(pa.array(wanted[places] - self._chunk_starts[number]))
            for place, text in zip(places.tolist(), taken.to_pylist(), strict=True):
                texts[place] = text
        return texts

    @cached_property
    def _chunk_starts(self) -> NDArray[np.int64]:
        lengths = [len(chunk) for chunk in self.table["text"].chunks]
        return np.cumsum([0, *lengths[:-1]])

    def text_hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the hashes by which duplicates are recognised."""
        return np.fromiter(map(same_text_hash, self.texts(rows.tolist())), dtype=np.uint64, count=len(rows))

    def used_texts(self) -> Iterator[str]:
        """Yield the texts of all sentences in use, in order."""
        row = 0
        for chunk in self.table["text"].chunks:
            kept = chunk if self.subset.is_everything else chunk.filter(pa.array(self.used[row : row + len(chunk)]))
            row += len(chunk)
            yield from (text.as_py() for text in kept)

    def document(self, row: int) -> int:
        """Return the document of a row."""
        return int(self.table["document"][row].as_py())

    def domain(self, row: int) -> str:
        """Return the domain of a row."""
        return self._names[int(self.table["domain"][row].as_py())]

    def sentence(self, row: int) -> Sentence:
        """Return the sentence in a row."""
        if not 0 <= row < len(self):
            raise UsageError(f"there is no sentence {row}", hint=f"the corpus has the ids 0 to {len(self) - 1}")
        if not (self.subset.is_everything or self.used[row]):
            raise UsageError(f"sentence {row} ({self.domain(row)}) is left out of this corpus", hint="choose another")
        document = self.document(row)
        source = self._source(document)["name"]
        return Sentence(row, self.text(row), document, self._position(row), self.domain(row), source)

    def _position(self, row: int) -> int:
        return int(self.table["position"][row].as_py())

    def _continues(self, row: int) -> bool:
        """Whether ``row`` exists and is in the same paragraph as the row before it."""
        return row < len(self) and self._position(row) > 0

    # -- paragraphs and documents ------------------------------------------------------------------------

    def neighbour(self, row: int) -> int | None:
        """Return the row next to ``row`` in its paragraph: the previous one, else the next, else None."""
        if self._continues(row):
            return row - 1
        return row + 1 if self._continues(row + 1) else None

    def previous(self, row: int) -> int:
        """Return the row before ``row`` in its domain, whatever its paragraph; the last row precedes the first."""
        rows = self._stream(self.domain(row))
        return int(rows[int(np.searchsorted(rows, row)) - 1])

    def _stream(self, domain: str) -> NDArray[np.int64]:
        """Return all rows of a domain in use, duplicates included."""
        if domain not in self._streams:
            code = self._names.index(domain)
            self._streams[domain] = np.flatnonzero((self.table["domain"].to_numpy() == code) & self.used)
        return self._streams[domain]

    def around(self, row: int, reach: int) -> list[int]:
        """Return the other rows of the paragraph that are at most ``reach`` away."""
        last = row
        while last < row + reach and self._continues(last + 1):
            last += 1
        return [other for other in range(row - min(reach, self._position(row)), last + 1) if other != row]

    def paragraph(self, row: int) -> list[Sentence]:
        """Return all sentences of the paragraph of ``row``."""
        sentence = self.sentence(row)
        others = map(self.sentence, self.around(row, len(self)))
        return sorted([sentence, *others], key=lambda each: each.row)

    def documents_like(self, text: str) -> set[int]:
        """Return the documents with this text, and the first document that has it as a sentence."""
        digest = document_hash(text)
        first, last = (int(np.searchsorted(self._hashes, np.uint64(digest), side)) for side in ("left", "right"))
        documents = set(self.hash_table["document"].slice(first, last - first).to_pylist())
        if self.subset.is_everything or not documents:
            return documents
        kept = {document for document in documents if self._source(document)["domain"] in self.domains}
        row = self.replacements.row_of(digest)
        return kept if row is None else kept | {self.document(row)}

    @cached_property
    def _hashes(self) -> NDArray[np.uint64]:
        return np.asarray(self.hash_table["hash"].to_numpy())

    def _source(self, document: int) -> dict[str, Any]:
        source: dict[str, Any] = self.manifest["sources"][bisect.bisect_right(self._first_documents, document) - 1]
        return source

    @cached_property
    def _first_documents(self) -> list[int]:
        return [source["first_document"] for source in self.manifest["sources"]]


# -- files and manifest ----------------------------------------------------------------------------------


def removed_domains(manifest: dict[str, Any]) -> tuple[str, ...]:
    """Return the domains that were removed and are still on disk."""
    return tuple(domain["name"] for domain in manifest["domains"] if domain.get("removed"))


def stored_hash(manifest: dict[str, Any]) -> str:
    """Return the hash of the corpus with this manifest, which opening it gives."""
    return CorpusSubset(removed_domains(manifest)).identity(str(manifest["files"][SENTENCES]["sha256"]))


def total_counts(domains: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return the sums of a manifest's counts over all domains that were not removed."""
    kept = [domain for domain in domains if not domain.get("removed")]
    names = ["sentences", "indexed", "paragraphs", "single"]
    # Corpora of earlier versions do not know it.
    if all("documents_kept" in domain for domain in kept):
        names.append("documents_kept")
    return {name: sum(domain[name] for domain in kept) for name in names}


def _count_documents(table: pa.Table, domains: int) -> list[int]:
    """Return how many documents have a sentence in each domain; the rows of a document follow each other."""
    counts, last = np.zeros(domains, dtype=np.int64), -1
    for batch in table.select(["document", "domain"]).to_batches():
        documents = batch["document"].to_numpy()
        counts += np.bincount(batch["domain"].to_numpy()[np.diff(documents, prepend=last) != 0], minlength=domains)
        last = documents[-1] if len(documents) else last
    return counts.tolist()


def finish_corpus(folder: Path, hashes: Sequence[pa.Table], manifest: dict[str, Any]) -> None:
    """Write the hash table and then the manifest of a folder that has its sentences."""
    merged = pa.concat_tables(hashes).sort_by([("hash", "ascending"), ("document", "ascending")]).combine_chunks()
    with pa.ipc.new_file(str(folder / TEXTS), HASHES) as file:
        file.write_table(merged)
    counts = _count_documents(map_table(folder / SENTENCES, SCHEMA), len(manifest["domains"]))
    domains = [{**domain, "documents_kept": n} for domain, n in zip(manifest["domains"], counts, strict=True)]
    about = {"format": FORMAT, "zicl": __version__, "domains": domains, **total_counts(domains)}
    write_json(folder / MANIFEST, {**manifest, **about, "files": describe_files(folder, (SENTENCES, TEXTS))})


def map_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Open an Arrow file with these columns as a memory map."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate()
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise CorpusDamagedError(f"{path} is not a whole Arrow file: {first_line(error)}", hint=AGAIN) from error
    if not table.schema.equals(schema) or any(column.null_count for column in table.columns):
        raise CorpusDamagedError(
            f"{path} has other columns than a corpus has, or empty cells; expected {', '.join(schema.names)}",
            hint=AGAIN,
        )
    return table


def check_rows(corpus: Corpus) -> None:
    """Check that all rows can be read, and that the numbers in them are those of something that is there.

    Arrow files say themselves where their texts are in the file: a wrong number would be followed out of it.
    """
    domains, documents = len(corpus.manifest["domains"]), corpus.document_ids
    positions, hashes = corpus.table["position"].to_numpy(), corpus.hash_table["hash"].to_numpy()
    expected = {
        "domains": _all_below(corpus.table["domain"].to_numpy(), domains),
        "documents": _all_below(corpus.table["document"].to_numpy(), documents)
        and _all_below(corpus.hash_table["document"].to_numpy(), documents),
        "positions in a paragraph": bool(np.all((positions >= 0) & (positions <= np.arange(len(positions))))),
        "hashes, ascending": bool(np.all(hashes[:-1] <= hashes[1:])),
    }
    problem = next((f"its rows have other {name} than it says" for name, right in expected.items() if not right), None)
    try:
        corpus.table.validate(full=True)
        corpus.hash_table.validate(full=True)
    except pa.ArrowException as error:
        problem = first_line(error)
    if problem:
        raise CorpusDamagedError(f"{corpus.path} is damaged: {problem}", hint=AGAIN)


def _all_below(numbers: NDArray[Any], limit: int) -> bool:
    return bool(np.all((numbers >= 0) & (numbers < limit)))


def describe_files(folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the sizes and hashes of files, for a manifest."""
    return {n: {"bytes": (folder / n).stat().st_size, "sha256": file_hash(folder / n)} for n in names}


def check_files(folder: Path, files: dict[str, dict[str, Any]], *, verify: bool | None = None) -> bool:
    """Check that the files of a corpus or an index are as its manifest describes them; return whether all were read."""
    small = sum(entry["bytes"] for entry in files.values()) < _VERIFY_BELOW
    read = small if verify is None else verify
    for name, entry in files.items():
        path = folder / name
        problem = None
        if not path.is_file():
            problem = "is missing"
        elif path.stat().st_size != entry["bytes"]:
            problem = f"has {path.stat().st_size:,} bytes instead of {entry['bytes']:,}"
        if problem is None:
            check_inside(path, folder, CorpusDamagedError)
            if read and file_hash(path) != entry["sha256"]:
                problem = "has other contents than when it was written"
        if problem:
            raise CorpusDamagedError(
                f"{path} {problem}", hint="copy the folder again from its source, or build it again"
            )
    return read
