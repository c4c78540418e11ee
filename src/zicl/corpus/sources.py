"""What to read: files, folders, standard input and Hugging Face data sets, each with its domain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from zicl.exceptions import TextError
from zicl.inputs.files import FORMATS, detect_format, display_name


@dataclass(frozen=True)
class Source:
    """One thing to read. ``path`` is a file, ``-`` for standard input, or ``hf:ID`` for a data set."""

    path: str
    domain: str
    format: str

    @property
    def name(self) -> str:
        """A name to show: never a folder of the machine the corpus was built on."""
        return display_name(self.path)

    @property
    def size(self) -> int:
        """Bytes on disk, 0 where that means nothing."""
        return Path(self.path).stat().st_size if self.is_file else 0

    @property
    def is_file(self) -> bool:
        """Whether this is a file on disk."""
        return self.path != "-" and not self.path.startswith("hf:")


def find_sources(
    paths: Iterable[str | Path],
    domains: Mapping[str, Iterable[str | Path]] | None = None,
    *,
    kind: str | None = None,
) -> list[Source]:
    """All sources, in the order given and sorted within a folder; plain paths are the domain ``text``.

    >>> find_sources(["-"])
    [Source(path='-', domain='text', format='txt')]
    """
    found: list[Source] = []
    for path in paths:
        found += _expand(str(path), "text", kind)
    for domain, members in (domains or {}).items():
        for path in members:
            found += _expand(str(path), domain, kind)
    if not found:
        raise TextError("no input was named", hint="name files, folders, hf:DATASET, or - for standard input")
    return found


def _below(folder: Path) -> Iterator[Path]:
    """What is in a folder and those in it, but nothing of corpora, whole or half built: they are no raw text.

    Linked folders count, each once; one that cannot be read is an error.
    """
    seen = {os.path.realpath(folder)}
    for place, inside, names in os.walk(folder, onerror=_unreadable, followlinks=True):
        kept = []
        for name in sorted(inside):
            real = os.path.realpath(Path(place) / name)
            if real not in seen and not _is_corpus(Path(place) / name):
                seen.add(real)
                kept.append(name)
        inside[:] = kept
        yield from (Path(place) / name for name in names)


def _unreadable(error: OSError) -> None:
    raise TextError(
        f"the folder {error.filename} cannot be read: {error.strerror}", hint="check its permissions, or leave it out"
    ) from error


def _is_corpus(folder: Path) -> bool:
    half = folder.suffix == ".partial" and (folder / "state.json").is_file()
    return half or ((folder / "manifest.json").is_file() and (folder / "sentences.arrow").is_file())


def _expand(path: str, domain: str, kind: str | None) -> list[Source]:
    if kind is not None and kind not in FORMATS:
        raise TextError(f"unknown format {kind!r}", hint=f"expected one of: {', '.join(FORMATS)}")
    if path == "-":
        return [Source("-", domain, kind or "txt")]
    if path.startswith("hf:"):
        return [Source(path, domain, "hf")]
    if not path.strip():
        # It would be the current folder.
        raise TextError("a path is empty", hint="a variable that is not set? Name a file, or . for the current folder")
    place = Path(path)
    if place.is_dir():
        files = sorted(p for p in _below(place) if p.is_file() and (kind or detect_format(p.name)))
        if not files:
            raise TextError(
                f"the folder {place} holds no file that can be read",
                hint=f"expected files ending in {', '.join('.' + f for f in FORMATS)}, or those with .gz or .zst",
            )
        return [Source(str(p), domain, kind or str(detect_format(p.name))) for p in files]
    if not place.exists():
        raise TextError(f"there is no file {place}", hint="check the path; quote patterns your shell expands")
    if not os.access(place, os.R_OK):
        raise TextError(f"{place} cannot be read: permission denied", hint="check the file's permissions")
    kind = kind or detect_format(place.name)
    if kind is None:
        raise TextError(
            f"{place.name}: a file of this kind cannot be read",
            hint=f"expected one of {', '.join('.' + f for f in FORMATS)} (also .gz, .zst), or name it with --format",
        )
    return [Source(str(place), domain, kind)]
