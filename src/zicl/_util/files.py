"""Write files and folders atomically, and read and hash files.

Writers use a temporary path beside the target and rename it when it is complete: readers never see half a file.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from zicl._util.failures import storage_errors
from zicl._util.registry import nearest_name
from zicl._util.strict_json import DEEPEST, TOO_DEEP, is_deep, parse_json
from zicl.exceptions import StorageError, UsageError, ZICLError

# Part of the names of temporary files: a process number means nothing on another machine.
_HERE = hashlib.sha256(platform.node().encode()).hexdigest()[:6]
# Of renameat2(2): paths are relative to the current folder, and both exist and change places.
_HERE_FD, _EXCHANGE = -100, 2
# The longest name of a file, and what is added to an output's for the files beside it.
_LONGEST_NAME, _BESIDE = 255, ".rows.jsonl" + "x" * 40
# Settings, labels and manifests; the largest that are in use have a few megabytes.
_LONGEST_DOCUMENT = 64 << 20
# The time of the TOML parser grows with the square of the parts of a dotted key.
_LONG_KEY = re.compile(rf"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}")


def home() -> Path:
    """Return the folder of fetched models and cached corpora: ``ZICL_HOME``, else ``~/.cache/zicl``."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(os.environ.get("ZICL_HOME") or f"{cache}/zicl").expanduser()
    if folder.exists() and not folder.is_dir():
        raise StorageError(
            f"{folder} is no folder, and models and caches are kept in it", hint="name a folder: ZICL_HOME=FOLDER"
        )
    return folder


@contextmanager
def atomic_write(path: Path, *, replace: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside ``path``: renamed to ``path`` when the block succeeds, else removed.

    A link stays, and what it leads to is written. What was written is on disk before it is renamed, and has the
    permissions that the umask gives. What killed processes left beside ``path`` is removed. Without ``replace`` a
    folder that another process wrote meanwhile stays: for folders that are named after their content.
    """
    with storage_errors(path):
        path = real_path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _restore(path)
        temporary = _temporary(path)
        try:
            yield temporary
            replace_path(temporary, path, replace=replace)
        finally:
            remove(temporary)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``path``: removed at the end, or by the next one if this process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = _temporary(path)
    scratch.mkdir()
    try:
        yield scratch
    finally:
        remove(scratch)


def _temporary(path: Path) -> Path:
    """Return a new temporary path beside ``path``, after removing those of processes that were killed."""
    _remove_stale(path)
    return path.with_name(f".{path.name}.{_HERE}-{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp")


def replace_path(finished: Path, target: Path, *, replace: bool = True) -> None:
    """Rename a finished file or folder to ``target``, in whose place it comes at once; a replaced folder is removed."""
    _restore(target)
    _settle(finished)
    if not finished.is_dir():
        os.replace(finished, target)
        return
    if replace and target.is_dir() and any(target.iterdir()):
        exchange(finished, target)
        remove(finished)
    else:
        try:
            os.replace(finished, target)
        except OSError:
            # Another process has finished the same folder first.
            if replace or not target.is_dir():
                raise
    _sync(target.parent)


def exchange(folder: Path, target: Path) -> None:
    """Exchange two folders: in one step where the system can, else ``target`` is missing between two renames."""
    here = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    rename = getattr(here, "renameat2", None)
    if rename is not None:
        if rename(_HERE_FD, os.fsencode(folder), _HERE_FD, os.fsencode(target), _EXCHANGE) == 0:
            return
        if (code := ctypes.get_errno()) not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(code, os.strerror(code), str(target))
    aside = _aside(target)
    os.replace(target, aside)
    os.replace(folder, target)
    os.replace(aside, folder)


def _aside(target: Path) -> Path:
    """Return where a folder is while another one comes into its place; no temporary file, which may be removed."""
    return target.with_name(f".{target.name}.replaced")


def _restore(target: Path) -> None:
    """Put a folder back whose process was killed while it was set aside; one that has been replaced is removed."""
    if (aside := _aside(target)).is_dir():
        if target.exists():
            remove(aside)
        else:
            os.replace(aside, target)


def _settle(finished: Path) -> None:
    """Put what was written on disk, with the permissions that the umask gives: some libraries write for one user."""
    paths = [finished, *finished.rglob("*")] if finished.is_dir() else [finished]
    for path in paths:
        if path.is_file() and not path.is_symlink():
            path.chmod(0o666 & ~_umask())
        _sync(path)


@cache
def _umask() -> int:
    # The system tells it only to those who set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync(path: Path) -> None:
    """Wait until a file or the entries of a folder are on disk; not all systems can do so for a folder."""
    is_folder = path.is_dir()
    if os.name != "posix" and is_folder:
        return
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # What some network file systems answer.
        if not is_folder or error.errno not in (errno.EINVAL, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def _remove_stale(path: Path) -> None:
    """Remove the temporary files that killed processes of this machine left beside ``path``."""
    for stale in path.parent.glob(f".{glob.escape(path.name)}.{_HERE}-*.tmp"):
        if not is_alive(int(stale.name.removesuffix(".tmp").split("-")[-2])):
            remove(stale)


def is_alive(process: int) -> bool:
    """Return whether a process of this machine is running; where that cannot be known, it counts as running."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def real_path(path: Path) -> Path:
    """Return where a link leads to, whether or not something is there; what is no link as it is."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def check_place(path: Path) -> None:
    """Check that a file or a folder can be written to a path: what is refused now is not refused after hours of work.

    Missing folders will be made, but not those that a link leads to.
    """
    if not path.name:
        raise UsageError("the name of an output is empty, or that of the folder it is in", hint="name what to write")
    with storage_errors(path):
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
        target = real_path(path).absolute()
        folder = next(parent for parent in target.parents if parent.exists() or parent.is_symlink())
        if not folder.exists():
            raise _broken_link(folder, real_path(folder))
        if not folder.is_dir():
            raise UsageError(f"{path} cannot be written: {folder} is a file", hint="choose another folder")
        if path.is_symlink() and folder != target.parent:
            raise _broken_link(path, target.parent)
        *folders, name = target.relative_to(folder).parts
        if max(map(_length, [*folders, name + _BESIDE])) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(path))
    if not os.access(folder, os.W_OK):
        raise StorageError(f"{path} cannot be written: {folder} is read-only", hint="choose another folder")


def _broken_link(link: Path, missing: Path) -> StorageError:
    return StorageError(
        f"{link} is a link to {os.path.realpath(link)}, and there is no folder {missing}",
        hint="make the folder, or remove the link",
    )


def _length(name: str) -> int:
    return len(os.fsencode(name))


def check_replaceable(target: Path, manifest: str, what: str) -> None:
    """Check that ``target`` is missing, an empty folder, or one that zicl wrote: nothing else may be replaced."""
    check_place(target)
    empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not empty and not (target / manifest).is_file():
        raise exists_error(target, what)


def exists_error(path: Path, expected: str = "a new name", *, overwrite: bool = False) -> StorageError:
    """Return the error for what is in the way of an output; with ``overwrite``, where the caller can have it replaced.

    >>> print(exists_error(Path("/"), overwrite=True))
    / exists already: it is a folder, and a new name was expected
      → choose another name, or replace it: `overwrite=True`
    """
    found, replace = "a folder" if path.is_dir() else "a file", "replace it: `overwrite=True`"
    return StorageError(
        f"{path} exists already: it is {found}, and {expected} was expected",
        hint=f"choose another name, or {replace if overwrite else 'remove it first'}",
    )


def remove(path: Path) -> None:
    """Remove a file or folder; what cannot be removed is left, and removed by a later run."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists() or path.is_symlink():
        with suppress(OSError):
            path.unlink()


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
    except IsADirectoryError as cause:
        raise error(f"{path} is a folder, and a .toml file was expected", hint=missing) from cause
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror}", hint=missing) from cause
    except (ValueError, RecursionError) as cause:
        reason = TOO_DEEP if isinstance(cause, RecursionError) else cause
        raise error(f"{path} is not TOML: {reason}", hint=form) from cause


def nearest_file(path: Path, suffix: str) -> str:
    """Return the beginning of a hint that suggests a file beside a missing one; empty if none has a name like it."""
    try:
        names = [each.name for each in path.parent.iterdir() if each.suffix == suffix and each.is_file()]
    except OSError:
        return ""
    return nearest_name(path.name, names)


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
