"""The manifest of a corpus as a strict schema: a corpus may come from a stranger."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, field_validator, model_validator

from zicl._util.files import check_inside, read_json
from zicl._util.process import __version__
from zicl._util.schema import Count, Entries, FileEntry, Strict, check_schema
from zicl.exceptions import CorpusDamagedError, CorpusMissingError, CorpusVersionError

FORMAT = 1
SENTENCES, TEXTS, MANIFEST = "sentences.arrow", "texts.arrow", "manifest.json"
AGAIN = "build the corpus again, or copy the folder again from its source"


class DomainEntry(Strict):
    """A domain and what it holds; a removed one may still be on disk."""

    name: str = Field(min_length=1)
    sentences: Count
    indexed: Count
    paragraphs: Count
    paragraphs_read: Count
    single: Count
    removed: bool = False
    documents_kept: Count | None = None

    @model_validator(mode="after")
    def _consistent(self) -> DomainEntry:
        # A removed domain keeps the numbers that it had.
        for smaller, larger in pairwise((self.single, self.paragraphs, self.sentences)):
            if smaller > larger:
                raise ValueError("expected at least as many sentences as paragraphs, and as paragraphs of one sentence")
        if self.indexed > self.sentences or self.paragraphs > self.paragraphs_read:
            raise ValueError("expected no more indexed than stored sentences, and no more paragraphs than were read")
        return self


class SourceEntry(Strict):
    """What a domain was read from: the name of a file, without its folder; and its own text column, if it has one."""

    name: str
    domain: str
    first_document: Count
    first_shard: Count
    text_column: str | None = None


class OptionsEntry(Strict):
    """How the corpus was built: domains that are added later are built in the same way."""

    model_config = ConfigDict(extra="forbid")

    max_paragraphs: int = Field(1, ge=1, le=1 << 53)
    seed: int = 0
    splitter: str = ""
    text_column: str = ""
    lines: bool = False
    encoding: str = ""
    domain_paragraphs: dict[str, Annotated[int, Field(ge=1, le=1 << 53)]] = Field(default_factory=dict)


class CorpusManifest(Strict):
    """What ``manifest.json`` holds."""

    format: int
    documents: Count
    document_ids: Count | None = None
    sentences: int = Field(ge=1)
    indexed: Count
    paragraphs: int = Field(ge=1)
    single: Count
    domains: Entries[DomainEntry] = Field(min_length=1)
    sources: Entries[SourceEntry] = Field(min_length=1)
    options: OptionsEntry
    files: dict[str, FileEntry]
    # Of ``documents``, which counts those that were read; corpora of earlier versions do not say it.
    documents_kept: Count | None = None

    @field_validator("files", mode="before")
    @classmethod
    def _own_files(cls, value: object) -> object:
        # Another name would be looked up, wherever it leads.
        if isinstance(value, dict) and set(value) != {SENTENCES, TEXTS}:
            raise ValueError(f"a corpus has the files {SENTENCES} and {TEXTS}, and no others")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> CorpusManifest:
        names = [domain.name for domain in self.domains]
        if len(set(names)) < len(names):
            raise ValueError("a domain is named twice")
        if strange := sorted({source.domain for source in self.sources} - set(names)):
            raise ValueError(f"a source is of the domain {strange[0]!r}, which is not one of the corpus")
        for key in ("first_document", "first_shard"):
            starts = [getattr(source, key) for source in self.sources]
            if starts[0] != 0 or starts != sorted(starts):
                raise ValueError(f"the sources are not in the order of their {key}, from 0")
        if self.sources[-1].first_document > self.all_documents or self.documents > self.all_documents:
            raise ValueError(f"there are more documents than {self.all_documents}")
        for key in ("sentences", "indexed", "paragraphs", "single"):
            total = sum(getattr(domain, key) for domain in self.domains if not domain.removed)
            if getattr(self, key) != total:
                raise ValueError(f"{key} is {getattr(self, key)}, and the domains have {total}")
        return self

    @property
    def all_documents(self) -> int:
        """The number of documents, those of removed domains included."""
        return self.documents if self.document_ids is None else self.document_ids


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a finished corpus, or raise an error that says what is wrong with the folder."""
    path = folder / MANIFEST
    if not path.is_file():
        if folder.is_dir():
            raise CorpusMissingError(
                f"{folder} is not a finished corpus: it has no {MANIFEST}",
                hint="build one: zicl corpus build -o reviews.zicl reviews/*.txt",
            )
        raise CorpusMissingError(f"there is no corpus {folder}", hint="zicl corpus build -o reviews.zicl reviews/*.txt")
    check_inside(path, folder, CorpusDamagedError)
    manifest = read_json(path, CorpusDamagedError, hint=AGAIN)
    version = manifest.get("format", FORMAT) if isinstance(manifest, dict) else FORMAT
    if version != FORMAT:
        raise CorpusVersionError(
            f"{folder} has format {version!s:.20}; this version of zicl reads format {FORMAT}",
            hint="build the corpus again, or install the version of zicl that wrote it "
            f"({manifest.get('zicl', 'unknown')!s:.20}; this is {__version__})",
        )
    check_schema(manifest, CorpusManifest, path, CorpusDamagedError, AGAIN)
    # Not the model: a changed corpus keeps what people added to it.
    return dict(manifest)
