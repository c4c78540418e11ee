"""Files that are whole or not there: written beside their place and moved in when complete."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs

from zicl.exceptions import StorageError, UsageError

_HARDLY_ANYTHING = 1 << 20
_LOCK = ".lock"


def home() -> Path:
    """Where fetched models and cached corpora live: ``ZICL_HOME``, else the user's cache directory."""
    return Path(os.environ.get("ZICL_HOME") or platformdirs.user_cache_dir("zicl")).expanduser()


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a full disk or a read-only folder into our error."""
    full = StorageError(
        f"the disk is full: {path} could not be written",
        hint="free some space, or point ZICL_HOME or the output to another disk; then run it again",
    )
    try:
        yield
    except RuntimeError as error:
        # FAISS and safetensors have errors of their own for a failed write.
        if _free(path) < _HARDLY_ANYTHING:
            raise full from error
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise full from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StorageError(
                f"{path} cannot be written: {error.strerror}",
                hint="choose a folder you may write to (for models and caches: the variable ZICL_HOME)",
            ) from error
        raise


def _free(path: Path) -> int:
    existing = next(p for p in (path, *path.absolute().parents) if p.exists())
    return shutil.disk_usage(existing).free


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``, moved into place when the block ends well, else removed.

    Of two processes that write the same folder the second to finish leaves the first one's in place:
    folders written this way are named after their content.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            if not (path.is_dir() and temporary.is_dir()):
                os.replace(temporary, path)
        finally:
            _remove(temporary)


def check_replaceable(target: Path, manifest: str, what: str) -> None:
    """Only what was written by us may be replaced: whatever else has that name is somebody's work."""
    own = not target.exists() or (target / manifest).is_file() or (target.is_dir() and not any(target.iterdir()))
    if not own:
        raise StorageError(
            f"{target} is there and is no {what}", hint="choose another name, or remove it yourself: it is not replaced"
        )


def move_in(folder: Path, target: Path) -> None:
    """Put a finished folder in its place; one that is there is moved aside first and then removed."""
    aside = None
    if target.exists():
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.old")
        os.replace(target, aside)
    os.replace(folder, target)
    if aside is not None:
        _remove(aside)


@contextmanager
def locked(folder: Path, message: str) -> Iterator[None]:
    """Make a folder that only one process may work in, and hold a lock inside it."""
    from filelock import FileLock, Timeout

    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise StorageError(message, hint="wait for it to end, or stop it") from error
    try:
        yield
    finally:
        lock.release()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def clear_folder(folder: Path) -> None:
    """Remove all a folder holds but its lock."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            _remove(path)


def write_text(path: Path, text: str) -> None:
    """Write a small text file, whole or not at all."""
    with writing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON, or say which file is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StorageError(f"{path} is damaged: {error}", hint="remove it and make it again") from error


def read_toml(path: Path, error: type[UsageError], *, missing: str, form: str) -> dict[str, Any]:
    """Read a user's TOML file; ``missing`` and ``form`` are the hints for one that is not there or not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as cause:
        raise error(f"there is no file {path}", hint=missing) from cause
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
        raise error(f"{path} is not TOML: {cause}", hint=form) from cause


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def text_hash(text: str) -> int:
    """A 64-bit hash of a text, the same on every machine.

    >>> text_hash("a") == text_hash("a") != text_hash("b")
    True
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
