"""Turn what the operating system says of disks and memory into errors that say what to do."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from zicl.exceptions import MemoryLimitError, StorageError, ZICLError, first_line

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_FAILING = (errno.EIO, errno.EFBIG, errno.ESTALE, errno.ENXIO, errno.EMFILE, errno.ENFILE)
# What libraries that are not written in Python put into the message of an error of their own.
_CODE = re.compile(r"(?:os error|[Ee]rrno|\bOs \{ code:) (\d+)")
_DISK = (*_FULL, *_FORBIDDEN, *_FAILING)
# What is wrong with a path, where the error names one.
_PATHS = {
    errno.ENOENT: "cannot be opened: there is no such file or folder",
    errno.ENOTDIR: "cannot be opened: a part of its path is a file, and a folder was expected",
    errno.EISDIR: "is a folder, and a file was expected",
    errno.ELOOP: "cannot be opened: its links lead in a circle",
    errno.ENAMETOOLONG: "cannot be opened: its name is too long, and at most 200 bytes were expected",
}
_SHOWN_CHARACTERS = 300
_OUT_OF_MEMORY = (
    "bad_alloc",
    "out of memory",
    "not enough memory",
    "allocate memory",
    "start new thread",
    "launch worker thread",
    "failed to map segment",
)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the errors of disks that are full, failing or read-only, and of paths, into a StorageError on ``path``."""
    try:
        yield
    except ZICLError:
        raise
    except Exception as error:
        found = storage_error(error, path)
        if found is None:
            raise
        raise found from error


def storage_error(error: BaseException, path: Path | None = None) -> ZICLError | None:
    """Return the error to show for one that the operating system gives for a disk or a path, or None for any other."""
    if isinstance(error, OSError) and error.errno in _PATHS:
        return _path_error(error, path)
    code = _error_code(error)
    if code not in _DISK:
        return None
    named = _subject(error, path)
    if code in _FULL:
        return StorageError(
            f"the disk is full: {named} could not be written",
            hint="free some space, or point ZICL_HOME or the output to another disk; then run it again",
        )
    if code in _FORBIDDEN:
        return StorageError(
            f"{named} cannot be {'written' if named == path else 'opened'}: {os.strerror(code)}",
            hint="choose a folder you may write to (for models and caches: the variable ZICL_HOME)"
            if named == path
            else "allow it (chmod), or name another file",
        )
    if code == errno.EFBIG:
        return StorageError(
            f"{named} could not be written: {os.strerror(code)}",
            hint="raise the limit on the size of files (ulimit -f), or choose a disk that allows such files",
        )
    return StorageError(
        f"{named} could not be read or written: {os.strerror(code)}",
        hint="check the disk, then run it again: what was complete before has not changed",
    )


def _path_error(error: OSError, path: Path | None) -> ZICLError | None:
    """Return the error for a path that leads nowhere; None if no path is named, which is a bug."""
    if isinstance(error, FileNotFoundError) and _is_folder_gone():
        return StorageError(
            "the folder in which zicl was started is gone, and names of files are looked up in it",
            hint="go to another folder (cd), or give full paths",
        )
    if not isinstance(error.filename, str | Path):
        return None
    named = str(_subject(error, path))
    shown = named if len(named) <= _SHOWN_CHARACTERS else f"{named[:_SHOWN_CHARACTERS]}…"
    return StorageError(
        f"{shown} {_PATHS[cast(int, error.errno)]}",
        hint="check the folders and links of its path, or name another one (for models and caches: the variable "
        "ZICL_HOME)",
    )


def _is_folder_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _subject(error: BaseException, path: Path | None) -> str | Path:
    """Return what an error is about: the artefact ``path`` for its temporary files, else the file that it names."""
    file = getattr(error, "filename", None)
    if not isinstance(file, str | Path):
        return path or "a file"
    if path is not None and Path(file).absolute().is_relative_to(path.absolute().parent):
        beside = Path(file).absolute().relative_to(path.absolute().parent).parts[:1]
        if all(name == path.name or name.startswith((f"{path.name}.", f".{path.name}.")) for name in beside):
            return path
    return file


def _error_code(error: BaseException) -> int | None:
    """Return the number of an error of the operating system, also of one that a library only quotes."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    message = str(error)
    if found := _CODE.search(message):
        return int(found.group(1))
    return next((code for code in _DISK if os.strerror(code) in message), None)


def memory_error(error: BaseException) -> ZICLError | None:
    """Return the error to show where memory ran out, or None for any other."""
    if not isinstance(error, MemoryError) and not _says_out_of_memory(error):
        return None
    return MemoryLimitError(
        f"memory ran out: {first_line(error)}",
        hint="lower what is held at once (--max-paragraphs or --index ivf-sq8 for a corpus; `scoring.batch_size`, "
        "`retrieval.k` or `scoring.dtype='bfloat16'` for a language model), or raise the limit (ulimit -v, the memory "
        "of the container); then run it again: builds and -o files are resumed",
    )


def _says_out_of_memory(error: BaseException) -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    # FAISS and torch's CPU allocator have no class of their own for it; nor has a thread without room for its stack.
    return isinstance(error, Exception) and any(text in str(error) for text in _OUT_OF_MEMORY)


def explain(error: BaseException) -> ZICLError | None:
    """Return the error to show for one that no part of zicl has turned into its own, or None for a bug."""
    found = memory_error(error)
    if found is None and isinstance(error, OSError):
        found = storage_error(error)
    return found
