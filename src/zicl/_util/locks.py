"""Lock folders: who writes to one is known to all others, and a killed process holds nothing.

A lock belongs to the process and not to its file, so the lock of a dead process is free at once.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from zicl._util.failures import storage_errors
from zicl._util.files import file_hash, real_path, remove, replace_path, write_text
from zicl.exceptions import StorageError

_LOCK, _HOLDER = ".lock", ".lock.json"
# Identifies what was moved into place from a work folder, which is of no more use then.
_FINISHED = ".finished"
_WAIT = 0.2


@contextmanager
def locked(folder: Path, message: str, *, waiting: Callable[[str], None] | None = None) -> Iterator[None]:
    """Create a folder and hold a lock in it, or raise an error with ``message`` if another process holds it.

    With ``waiting``, which is told the message once, wait instead. A folder that has nothing but the lock is removed,
    and so are its parents that were made for it and hold nothing.
    """
    from filelock import FileLock, Timeout

    made = [parent for parent in folder.absolute().parents if not parent.exists()]
    lock, told = FileLock(folder / _LOCK, timeout=0), False
    while True:
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
                # Not if the holder removed the folder after this process had opened the lock.
                if (folder / _LOCK).exists():
                    break
                lock.release()
            except FileNotFoundError:
                continue
            except Timeout as error:
                who, process = _holder(folder)
                if waiting is None:
                    stop = f": kill {process}" if process else ""
                    hint = f"wait for it to end, or stop it{stop}"
                    raise StorageError(f"{message}{who}", hint=hint) from error
                if not told:
                    waiting(f"{message}{who}")
                told = True
        time.sleep(_WAIT)
    try:
        with storage_errors(folder):
            _say_who(folder)
            yield
    finally:
        remove(folder / _HOLDER)
        # The folder may be gone, or on a disk that fails: the error of the block is the one to show.
        with suppress(OSError):
            if not _content(folder):
                remove(folder)
                for parent in made:
                    parent.rmdir()
        lock.release()


@contextmanager
def work_folder(target: Path, message: str) -> Iterator[Path]:
    """Lock the folder beside ``target`` in which it is prepared; removed at the end, kept by an error to be resumed."""
    work = _work_path(target)
    with locked(work, message):
        yield work
        _clear(work)


def publish(finished: Path, target: Path, manifest: str) -> None:
    """Move a finished folder out of its work folder into the place of ``target``."""
    note_finished(finished.parent, finished / manifest)
    replace_path(finished, real_path(target))


def _work_path(target: Path) -> Path:
    """Return the work folder of a target: on the disk of what it is renamed to, wherever a link to that is."""
    target = real_path(target)
    return target.with_name(target.name + ".partial")


def note_finished(work: Path, manifest: Path) -> None:
    """Note in a work folder which manifest its target will have once nothing of the work is needed any more."""
    write_text(work / _FINISHED, file_hash(manifest))


def remove_finished(target: Path, manifest: str) -> None:
    """Remove the work folder of a process that was killed after ``target`` was in place."""
    work = _work_path(target)
    note = work / _FINISHED
    finished = note.is_file() and (target / manifest).is_file() and note.read_text() == file_hash(target / manifest)
    if finished or (work.is_dir() and not _content(work)):
        with suppress(StorageError), locked(work, f"{target} is being made by another process"):
            _clear(work)


def clear_folder(folder: Path) -> None:
    """Remove everything in a locked folder except for its lock."""
    for path in _content(folder):
        remove(path)


def _clear(work: Path) -> None:
    """Remove what a finished work folder holds, the note that it is finished last; what cannot be removed is left."""
    for path in sorted(_content(work), key=lambda path: path.name == _FINISHED):
        if path.name != _FINISHED or len(_content(work)) == 1:
            remove(path)


def _content(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name not in (_LOCK, _HOLDER)]


def _say_who(folder: Path) -> None:
    who = {"process": os.getpid(), "machine": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    write_text(folder / _HOLDER, json.dumps(who) + "\n")


def _holder(folder: Path) -> tuple[str, str]:
    """Return who holds the lock since when, in brackets, and the number of a process of this machine."""
    try:
        who = json.loads((folder / _HOLDER).read_text())
        process, machine, since = str(int(who["process"])), str(who["machine"]), str(who["since"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""
    here = machine == platform.node()
    return f" (process {process}{'' if here else f' on {machine}'}, since {since})", process if here else ""
