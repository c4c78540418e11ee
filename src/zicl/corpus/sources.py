"""Find what a corpus is built from: files, folders, standard input and Hugging Face data sets, each with a domain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from zicl.exceptions import TextError
from zicl.inputs.files import FORMATS, detect_format, display_name, split_sheet, unknown_format


@dataclass(frozen=True)
class Source:
    """One input of a corpus. ``path`` is a file, ``-`` for standard input, or ``hf:ID`` for a data set.

    ``text_column`` is where the build's own does not apply, as with the data sets of several publishers.
    """

    path: str
    domain: str
    format: str
    text_column: str | None = None

    @property
    def name(self) -> str:
        """The name to show, without folders: it is stored in the corpus."""
        return display_name(self.path)

    @property
    def size(self) -> int:
        """Bytes on disk, 0 if it is not a file."""
        return Path(split_sheet(self.path)[0]).stat().st_size if self.is_file else 0

    @property
    def is_file(self) -> bool:
        """Whether this is a file on disk."""
        return self.path != "-" and not self.path.startswith("hf:")


def find_sources(
    paths: Iterable[str | Path],
    domains: Mapping[str, Iterable[str | Path]] | None = None,
    *,
    kind: str | None = None,
    text_columns: Mapping[str, str] | None = None,
) -> list[Source]:
    """Return all sources, in the given order and sorted within a folder; ``paths`` have the domain ``text``.

    ``text_columns`` gives the column of the text by domain, where it is not the build's.

    >>> find_sources(["-"])
    [Source(path='-', domain='text', format='txt', text_column=None)]
    """
    if kind is not None and kind not in FORMATS:
        raise TextError(f"unknown format {kind!r}", hint=f"expected one of: {', '.join(FORMATS)}")
    sources: list[Source] = []
    for path in paths:
        sources += _expand(str(path), "text", kind)
    for domain, members in (domains or {}).items():
        for path in members:
            sources += _expand(str(path), domain, kind)
    if not sources:
        raise TextError("no input was named", hint="name files, folders, hf:DATASET, or - for standard input")
    columns = text_columns or {}
    return [replace(source, text_column=columns.get(source.domain)) for source in sources]


def _expand(path: str, domain: str, kind: str | None) -> list[Source]:
    """Return the source that a path names, or all sources in a folder."""
    if path == "-":
        return [Source("-", domain, kind or "txt")]
    if path.startswith("hf:"):
        return [Source(path, domain, "hf")]
    if not path.strip():
        # Path("") is the current folder.
        raise TextError("a path is empty", hint="a variable that is not set? Name a file, or . for the current folder")
    place = Path(path)
    if place.is_dir():
        files = sorted(p for p in _walk(place) if p.is_file() and (kind or detect_format(p.name)))
        if not files:
            raise TextError(
                f"the folder {place} holds no file that can be read",
                hint=f"expected files ending in {', '.join('.' + f for f in FORMATS)}, possibly with .gz or .zst",
            )
        return [Source(str(p), domain, kind or str(detect_format(p.name))) for p in files]
    # A sheet may be named behind the file.
    place = Path(split_sheet(path)[0])
    if not place.exists():
        raise TextError(f"there is no file {place}", hint="check the path")
    if not os.access(place, os.R_OK):
        raise TextError(f"{place} cannot be read: permission denied", hint="check the file's permissions")
    kind = kind or detect_format(place.name)
    if kind is None:
        raise unknown_format(place.name, " (the first three also .gz or .zst), or name it with --format")
    return [Source(path, domain, kind)]


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder, except for those of corpora, finished or not: they are not raw text.

    Symbolic links are followed, but every folder is read once; a folder that cannot be read is an error.
    """
    seen = {os.path.realpath(folder)}
    for parent, subfolders, names in os.walk(folder, onerror=_raise_unreadable, followlinks=True):
        new = []
        for name in sorted(subfolders):
            real = os.path.realpath(Path(parent) / name)
            if real not in seen and not _is_corpus(Path(parent) / name):
                seen.add(real)
                new.append(name)
        # os.walk visits what is left in this list.
        subfolders[:] = new
        yield from (Path(parent) / name for name in names)


def _raise_unreadable(error: OSError) -> None:
    raise TextError(
        f"the folder {error.filename} cannot be read: {error.strerror}", hint="check its permissions, or leave it out"
    ) from error


def _is_corpus(folder: Path) -> bool:
    unfinished = folder.suffix == ".partial" and (folder / "state.json").is_file()
    return unfinished or ((folder / "manifest.json").is_file() and (folder / "sentences.arrow").is_file())
