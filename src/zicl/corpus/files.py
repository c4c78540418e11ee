"""The files of a corpus or an index, against what its manifest says of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zicl._util.files import file_hash
from zicl.exceptions import CorpusDamagedError

# Below this size opening a corpus checks the hashes, above it only the sizes ("zicl corpus info --verify").
_VERIFY_BELOW = 256 << 20


def check_files(folder: Path, files: dict[str, dict[str, Any]], *, verify: bool | None = None) -> None:
    """Compare files with what a manifest says of them, and name the one that differs."""
    small = sum(entry["bytes"] for entry in files.values()) < _VERIFY_BELOW
    for name, entry in files.items():
        path = folder / name
        problem = None
        if not path.is_file():
            problem = "is missing"
        elif path.stat().st_size != entry["bytes"]:
            problem = f"has {path.stat().st_size:,} bytes instead of {entry['bytes']:,}"
        elif (small if verify is None else verify) and file_hash(path) != entry["sha256"]:
            problem = "has other contents than when it was written"
        if problem:
            raise CorpusDamagedError(
                f"{path} {problem}", hint="copy the folder again from its source, or build it anew"
            )


def describe_files(folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Size and hash of files, for a manifest."""
    return {n: {"bytes": (folder / n).stat().st_size, "sha256": file_hash(folder / n)} for n in names}
