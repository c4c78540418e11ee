"""The manifest of a corpus as a strict schema: a corpus may come from a stranger."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from zicl._util.files import read_json
from zicl._util.process import __version__
from zicl._util.validation import config_error
from zicl.exceptions import CorpusDamagedError, CorpusMissingError, CorpusVersionError, StorageError

FORMAT = 1
SENTENCES, TEXTS, MANIFEST = "sentences.arrow", "texts.arrow", "manifest.json"
_AGAIN = "build the corpus again, or copy the folder again from its source"


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class FileEntry(_Strict):
    """The size and the hash of a file."""

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class DomainEntry(_Strict):
    """A domain and what it holds; a removed one may still be on disk."""

    name: str = Field(min_length=1)
    sentences: int = Field(ge=0)
    indexed: int = Field(ge=0)
    paragraphs: int = Field(ge=0)
    single: int = Field(ge=0)
    removed: bool = False


class SourceEntry(_Strict):
    """What a domain was read from: the name of a file, without its folder; and its own text column, if it has one."""

    name: str
    domain: str
    first_document: int = Field(ge=0)
    first_shard: int = Field(ge=0)
    text_column: str | None = None


class CorpusManifest(_Strict):
    """What ``manifest.json`` holds; keys that are only for people are not checked."""

    format: int
    documents: int = Field(ge=0)
    document_ids: int | None = Field(None, ge=0)
    sentences: int = Field(ge=0)
    indexed: int = Field(ge=0)
    domains: list[DomainEntry] = Field(min_length=1)
    sources: list[SourceEntry]
    options: dict[str, Any]
    files: dict[str, FileEntry]

    @field_validator("files")
    @classmethod
    def _own_files(cls, value: dict[str, FileEntry]) -> dict[str, FileEntry]:
        # Another name would be looked up, wherever it leads.
        if set(value) != {SENTENCES, TEXTS}:
            raise ValueError(f"a corpus has the files {SENTENCES} and {TEXTS}, and no others")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> CorpusManifest:
        names = [domain.name for domain in self.domains]
        if len(set(names)) < len(names):
            raise ValueError("a domain is named twice")
        if strange := sorted({source.domain for source in self.sources} - set(names)):
            raise ValueError(f"a source is of the domain {strange[0]!r}, which is not one of the corpus")
        if any(a.first_document > b.first_document for a, b in pairwise(self.sources)):
            raise ValueError("the sources are not in the order of their documents")
        for key in ("sentences", "indexed"):
            total = sum(getattr(domain, key) for domain in self.domains if not domain.removed)
            if getattr(self, key) != total:
                raise ValueError(f"{key} is {getattr(self, key)}, and the domains have {total}")
        return self


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
    try:
        manifest: dict[str, Any] = read_json(path)
        version = manifest["format"]
    except (StorageError, KeyError, TypeError) as error:
        raise CorpusDamagedError(f"{path} is damaged: {error}", hint="build the corpus again") from error
    if version != FORMAT:
        raise CorpusVersionError(
            f"{folder} has format {version}; this version of zicl reads format {FORMAT}",
            hint="build the corpus again, or install the version of zicl that wrote it "
            f"({manifest.get('zicl', 'unknown')}; this is {__version__})",
        )
    try:
        CorpusManifest.model_validate(manifest)
    except ValidationError as error:
        raise CorpusDamagedError(
            f"{path} is damaged: {config_error(error, CorpusManifest).message}", hint=_AGAIN
        ) from error
    return manifest
