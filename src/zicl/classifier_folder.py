"""The folder of a saved classifier, of either kind: written whole or not at all, and last what says that it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from zicl._util.files import check_own, move_in, read_json, storage_errors, write_json, write_text
from zicl.exceptions import StorageError, UsageError
from zicl.prompt.labels import Labels

FORMAT = 1
LABELS, CLASSIFIER = "labels.toml", "classifier.json"
# The kind of a classifier without a language model; folders of the other kind name none.
DISTILLED = "distilled"


def write_folder(
    folder: Path,
    content: dict[str, Any],
    labels: str,
    *,
    add: Callable[[Path], None] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a new folder; one that holds the very same is left as it is. ``add`` writes what else belongs in it."""
    if folder.exists() and not overwrite:
        if _holds(folder, content, labels):
            return folder
        raise StorageError(f"{folder} exists already", hint="choose another name, or remove it first")
    check_own(folder, CLASSIFIER, "saved classifier")
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
            whole = Path(scratch) / folder.name
            whole.mkdir()
            write_text(whole / LABELS, labels)
            if add is not None:
                add(whole)
            write_json(whole / CLASSIFIER, content)
            move_in(whole, folder)
    return folder


def check_names(folder: Path, labels: Labels, *learned: Iterable[str]) -> None:
    """The labels that a folder names are those that something was learned for."""
    for names in learned:
        if set(names) != set(labels.names):
            raise UsageError(
                f"{folder / LABELS} names {', '.join(labels.names)}, and what was learned is for {', '.join(names)}",
                hint="undo the change of that file, or make the classifier again with these labels",
            )


def _holds(folder: Path, content: dict[str, Any], labels: str) -> bool:
    if not (folder / CLASSIFIER).is_file() or not (folder / LABELS).is_file():
        return False
    same = bool(read_json(folder / CLASSIFIER) == json.loads(json.dumps(content)))
    return same and (folder / LABELS).read_text(encoding="utf-8") == labels


def seen_from(folder: Path, path: Path) -> str:
    """A path as it is found from a folder: both may be moved together."""
    return os.path.relpath(path.expanduser().resolve(), folder.resolve())
