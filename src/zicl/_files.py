"""Files that are whole or not there: written beside their place and moved in when complete."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs

from zicl.exceptions import StorageError


def home() -> Path:
    """Where fetched models and cached corpora live: ``ZICL_HOME``, else the user's cache directory."""
    return Path(os.environ.get("ZICL_HOME") or platformdirs.user_cache_dir("zicl")).expanduser()


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a full disk or a read-only folder into our error."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StorageError(
                f"the disk is full: {path} could not be written",
                hint="free some space, or point ZICL_HOME or the output to another disk; then run it again",
            ) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StorageError(
                f"{path} cannot be written: {error.strerror}",
                hint="choose a folder you may write to (for models and caches: the variable ZICL_HOME)",
            ) from error
        raise


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``, moved into place when the block ends well, else removed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a small text file, whole or not at all."""
    with writing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:  # noqa: ANN401 - anything json can write
    """Write readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def file_hash(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """The SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
            if progress:
                progress(len(piece))
    return digest.hexdigest()


def text_hash(text: str) -> int:
    """A 64-bit hash of a text, the same on every machine.

    >>> text_hash("a") == text_hash("a") != text_hash("b")
    True
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
