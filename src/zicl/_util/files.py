"""Write files and folders atomically, lock folders, and read and hash files.

Writers use a temporary path beside the target and rename it when it is complete: readers never see half a file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zicl._util.strict_json import DEEPEST, TOO_DEEP, is_deep, parse_json
from zicl.exceptions import StorageError, UsageError, ZICLError

# A disk with fewer free bytes counts as full.
_FULL_BELOW = 1 << 20
_LOCK = ".lock"
# Settings, labels and manifests; the largest that are in use have a few megabytes.
_LONGEST_DOCUMENT = 64 << 20
# The time of the TOML parser grows with the square of the parts of a dotted key.
_LONG_KEY = re.compile(rf"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}")


def home() -> Path:
    """Return the folder of fetched models and cached corpora: ``ZICL_HOME``, else ``~/.cache/zicl``."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("ZICL_HOME") or f"{cache}/zicl").expanduser()


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors for a full disk or a read-only folder into a StorageError."""
    full = StorageError(
        f"the disk is full: {path} could not be written",
        hint="free some space, or point ZICL_HOME or the output to another disk; then run it again",
    )
    try:
        yield
    except RuntimeError as error:
        # FAISS and safetensors raise this, not OSError, when a write fails.
        existing = next(p for p in (path, *path.absolute().parents) if p.exists())
        if shutil.disk_usage(existing).free < _FULL_BELOW:
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


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``: renamed to ``path`` when the block succeeds, else removed.

    If two processes write the same folder, the one that finishes first wins: folders written this way are named
    after their content.
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
    """Check that ``target`` is missing, an empty folder, or one that zicl wrote: nothing else may be replaced."""
    empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not empty and not (target / manifest).is_file():
        raise StorageError(f"{target} exists and is not a {what}", hint="choose another name, or remove it first")


def replace_folder(folder: Path, target: Path) -> None:
    """Rename a finished folder to ``target``; an existing one is moved aside first and then removed."""
    replaced = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.old")
    if target.exists():
        os.replace(target, replaced)
    os.replace(folder, target)
    _remove(replaced)


@contextmanager
def locked(folder: Path, message: str) -> Iterator[None]:
    """Create a folder and hold a lock in it, or raise an error with ``message`` if another process holds it."""
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
    """Remove everything in a folder except for its lock."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            _remove(path)


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def read_json(path: Path, error: type[ZICLError] = StorageError, *, hint: str = "remove it and create it again") -> Any:
    """Read JSON, or raise an ``error`` that names the file; one that is missing is a FileNotFoundError."""
    try:
        return parse_json(_read_small(path))
    except ValueError as cause:
        raise error(f"{path} is damaged: {cause}", hint=hint) from cause
    except FileNotFoundError:
        raise
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror}", hint="check its permissions") from cause


def read_toml(path: Path, error: type[UsageError], *, missing: str, form: str) -> dict[str, Any]:
    """Read a user's TOML file; ``missing`` and ``form`` are the hints for a missing and an invalid file."""
    try:
        text = _read_small(path)
        if _LONG_KEY.search(text):
            raise ValueError(TOO_DEEP)
        table = tomllib.loads(text)
        if is_deep(table):
            raise ValueError(TOO_DEEP)
        return table
    except FileNotFoundError as cause:
        raise error(f"there is no file {path}", hint=missing) from cause
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror}", hint=missing) from cause
    except (ValueError, RecursionError) as cause:
        reason = TOO_DEEP if isinstance(cause, RecursionError) else cause
        raise error(f"{path} is not TOML: {reason}", hint=form) from cause


def _read_small(path: Path) -> str:
    with path.open("rb") as stream:
        content = stream.read(_LONGEST_DOCUMENT + 1)
    if len(content) > _LONGEST_DOCUMENT:
        raise ValueError(f"it is longer than {_LONGEST_DOCUMENT >> 20} MB")
    # Some editors write a byte-order mark.
    return content.decode("utf-8-sig")


def check_inside(path: Path, folder: Path, error: type[ZICLError] = StorageError) -> None:
    """Check that a file of a folder is no link that leads out of it: the folder may come from a stranger."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise error(f"{path} is a link that leads out of {folder}", hint="put the file itself there, if you trust it")


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def text_hash(text: str) -> int:
    """Return a 64-bit hash of a text that is the same on every machine.

    >>> text_hash("a") == text_hash("a") != text_hash("b")
    True
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
