"""A corpus on disk: one folder, memory-mapped, with a manifest that is written last.

reviews.zicl/
  sentences.arrow    text · document · position · domain · indexed, in the order of the raw text
  texts.arrow        hashes of every document and distinct sentence, sorted, to recognise an input that is one
  manifest.json      version, counts, sources and the hashes of the files
  index/             the vectors (see retrieve/index.py)
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from zicl._files import file_hash, read_json
from zicl.corpus.documents import document_hash
from zicl.exceptions import CorpusDamagedError, CorpusMissingError, CorpusVersionError, StorageError, UsageError

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
# Below this size opening a corpus checks the hashes, above it only the sizes ("zicl corpus info --verify").
_VERIFY_BELOW = 256 << 20


@dataclass(frozen=True)
class Sentence:
    """A sentence and where it stands."""

    row: int
    text: str
    document: int
    position: int
    domain: str
    source: str


class Corpus:
    """The sentences of a corpus in their order. Opening it reads no text.

    A handle: deep copies are the corpus itself.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path, self.manifest = path, manifest
        self.table: pa.Table = _map(path / SENTENCES)
        self.domains: list[str] = [domain["name"] for domain in manifest["domains"]]

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
        """Identifies the text: the hash of the sentences file."""
        return str(self.manifest["files"][SENTENCES]["sha256"])

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
    def _chunk_starts(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        lengths = [len(chunk) for chunk in self.table["text"].chunks]
        return np.cumsum([0, *lengths[:-1]])

    def document(self, row: int) -> int:
        """The document a row belongs to."""
        return int(self.table["document"][row].as_py())

    def domain(self, row: int) -> str:
        """The domain a row belongs to."""
        return self.domains[int(self.table["domain"][row].as_py())]

    def sentence(self, row: int) -> Sentence:
        """A row with all that is known of it."""
        if not 0 <= row < len(self):
            raise UsageError(f"there is no sentence {row}", hint=f"the corpus has the ids 0 to {len(self) - 1}")
        document = self.document(row)
        source = self.manifest["sources"][bisect.bisect_right(self._first_documents, document) - 1]
        position = int(self.table["position"][row].as_py())
        return Sentence(row, self.text(row), document, position, self.domain(row), source["name"])

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

    def domain_rows(self, domain: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """All indexed rows of a domain."""
        return self._rows_by_domain[self.domains.index(domain)]

    @cached_property
    def _rows_by_domain(self) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
        codes = self.table["domain"].to_numpy()
        indexed = self.table["indexed"].to_numpy()
        return [np.flatnonzero((codes == code) & indexed) for code in range(len(self.domains))]

    def documents_like(self, text: str) -> set[int]:
        """The documents whose whole text is ``text``, or in which it stands as a sentence."""
        wanted = np.uint64(document_hash(text))
        first, last = (int(np.searchsorted(self._hashes, wanted, side)) for side in ("left", "right"))
        return set(self._known_texts["document"].slice(first, last - first).to_pylist())

    @cached_property
    def _known_texts(self) -> pa.Table:
        return _map(self.path / TEXTS)

    @cached_property
    def _hashes(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return np.asarray(self._known_texts["hash"].to_numpy())


def _map(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


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
