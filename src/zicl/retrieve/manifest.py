"""The manifest of an index as a strict schema: like the corpus it belongs to, it may come from a stranger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from zicl._util.files import check_inside, read_json
from zicl._util.schema import Count, FileEntry, Sha256, Strict, check_schema
from zicl.exceptions import CorpusDamagedError, CorpusVersionError, IndexMissingError
from zicl.retrieve.builder import COMPRESSED_FORMAT, FOLDER, FORMAT, MANIFEST, ROWS, VECTORS
from zicl.retrieve.kinds import COMPRESSED, KINDS, STORED


class EncoderEntry(Strict):
    """The encoder that made the vectors."""

    name: str = Field(min_length=1)
    identity: str = Field(min_length=1)
    dimension: Count


class SearchEntry(Strict):
    """How far the index is searched, where it was tuned."""

    model_config = ConfigDict(extra="forbid")

    nprobe: int | None = Field(None, ge=1, le=1 << 31)
    refine: int | None = Field(None, ge=1, le=1 << 31)


class IndexManifest(Strict):
    """What the ``manifest.json`` of an index holds."""

    format: int
    corpus: Sha256
    encoder: EncoderEntry
    kind: str
    vectors: int = Field(ge=1, le=1 << 53)
    files: dict[str, FileEntry]
    search: SearchEntry | None = None

    @model_validator(mode="after")
    def _own_files(self) -> IndexManifest:
        compressed = self.kind in COMPRESSED
        expected = {VECTORS, ROWS, STORED} if compressed else {VECTORS, ROWS}
        if set(self.files) != expected:
            raise ValueError(f"an index of the kind {self.kind} has the files {', '.join(sorted(expected))}, no others")
        if self.format != (COMPRESSED_FORMAT if compressed else FORMAT):
            raise ValueError(f"an index of the kind {self.kind} has another format than {self.format}")
        return self


def read_index_manifest(corpus: Path) -> dict[str, Any]:
    """Return the manifest of a corpus' index, or raise an error that says what is wrong with it."""
    path, again = corpus / FOLDER / MANIFEST, f"zicl index build {corpus}"
    if not path.is_file():
        raise IndexMissingError(f"{corpus} has text but no index", hint=again)
    check_inside(path, corpus, CorpusDamagedError)
    manifest = read_json(path, CorpusDamagedError, hint=again)
    known = isinstance(manifest, dict) and {"format", "kind"} <= manifest.keys()
    if known and not (manifest["format"] in (FORMAT, COMPRESSED_FORMAT) and manifest["kind"] in KINDS[1:]):
        raise CorpusVersionError(
            f"the index of {corpus} has format {manifest['format']!s:.20} and kind {manifest['kind']!s:.20}; this "
            f"version of zicl reads formats {FORMAT} and {COMPRESSED_FORMAT} with the kinds {', '.join(KINDS[1:])}",
            hint=again,
        )
    check_schema(manifest, IndexManifest, path, CorpusDamagedError, again)
    # Not the model: a changed corpus keeps what people added to it.
    return dict(manifest)
