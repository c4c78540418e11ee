"""Compile the shim, and arm it in a process that was started with it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
# What each kind of fault is called in reports; a write that fails or is killed has written half of its bytes.
KINDS = {"n": "ENOSPC", "e": "EIO", "a": "EACCES", "k": "SIGKILL"}
# Operations that EACCES cannot happen to: a file that is open for writing stays open.
_NO_PERMISSION_NEEDED = "ws"


def why_not() -> str | None:
    """Return why faults cannot be injected here, or None."""
    if not sys.platform.startswith("linux"):
        return "the shim that breaks file operations is for Linux"
    if shutil.which("cc") is None:
        return "there is no C compiler (cc) for the shim that breaks file operations"
    return None


def build_shim(folder: Path) -> Path:
    """Compile the shim into a folder."""
    library = folder / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def preloaded(library: Path) -> dict[str, str]:
    """Return the environment of a process in which operations can be broken, on one thread, so that it may fork."""
    one = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "200"}
    return {**os.environ, **one, "LD_PRELOAD": str(library)}


@dataclass(frozen=True)
class Operation:
    """One operation on files: its number from 1, what it is (open, write, sync, rename, mkdir, unlink), its path."""

    number: int
    type: str
    path: str

    def faults(self) -> str:
        """Return the kinds of fault that can happen to it."""
        return "".join(kind for kind in KINDS if self._may(kind))

    def _may(self, kind: str) -> bool:
        if kind == "n":
            return self.type in "wom"
        return kind != "a" or self.type not in _NO_PERMISSION_NEEDED


def arm(prefix: Path, number: int, kind: str, log: Path | None = None) -> None:
    """Count operations below a path, and break the one of this number; kind ``c`` only counts."""
    name = b"" if log is None else str(log).encode()
    ctypes.CDLL(None).fault_arm(f"{prefix}/".encode(), ctypes.c_long(number), ord(kind), name)


def disarm() -> int:
    """Break nothing any more; return how many operations were broken."""
    library = ctypes.CDLL(None)
    library.fault_disarm()
    return int(library.fault_broken())


def read_log(log: Path) -> list[Operation]:
    """Return the operations of a run that was only counted."""
    lines = (line.split(" ", 2) for line in log.read_text().splitlines())
    return [Operation(int(number), kind, path) for number, kind, path in lines]


def chosen(operations: list[Operation]) -> list[Operation]:
    """Return the operations to break: of the writes to one file in a row, the first, the middle and the last."""
    kept: list[Operation] = []
    run: list[Operation] = []
    for operation in [*operations, Operation(0, "", "")]:
        if run and (operation.type != "w" or operation.path != run[0].path):
            kept += list(dict.fromkeys([run[0], run[len(run) // 2], run[-1]]))
            run = []
        if operation.type == "w":
            run.append(operation)
        elif operation.number:
            kept.append(operation)
    return sorted(kept, key=lambda operation: operation.number)
