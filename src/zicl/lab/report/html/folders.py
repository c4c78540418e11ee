"""What the folders on the command line hold: results, and studies with results of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zicl.exceptions import StorageError
from zicl.lab.evaluate.store import MANIFEST, ROWS
from zicl.lab.report.html.studies import Study, read_study
from zicl.lab.report.study_summary import FILE as STUDY


@dataclass(frozen=True)
class Found:
    """Results folders that stand for themselves, and studies."""

    results: tuple[Path, ...]
    studies: tuple[Study, ...]


def find(paths: Sequence[Path]) -> Found:
    """Results and studies in these folders and below them, each once, in the order of the names."""
    results: dict[Path, Path] = {}
    studies: dict[Path, Study] = {}
    for path in paths:
        folders = list(_walk(path))
        for folder in folders:
            if (folder / STUDY).is_file():
                studies[folder.resolve()] = read_study(folder, tuple(_results(folder)))
            else:
                results.setdefault(folder.resolve(), folder)
        if not folders:
            raise StorageError(
                f"{path} holds no results and no study" if path.is_dir() else f"there is no {path}",
                hint="give a folder that zicl evaluate or zicl study wrote, or one that holds such folders",
            )
    return Found(tuple(results.values()), tuple(_told_apart(studies)))


def _told_apart(studies: Mapping[Path, Study]) -> Iterator[Study]:
    """Studies of one name, of two models perhaps, with the folders that they are in."""
    for folder, study in studies.items():
        alike = [other for other, its in studies.items() if its.told.name == study.told.name]
        top = os.path.commonpath([other.parent for other in alike])
        yield replace(study, within=os.path.relpath(folder.parent, top)) if len(alike) > 1 else study


def _walk(path: Path) -> Iterator[Path]:
    """The folders that are results or a study; nobody looks for more inside them."""
    if (path / STUDY).is_file() or _is_results(path):
        yield path
    elif path.is_dir():
        for folder in sorted(path.iterdir()):
            if folder.is_dir() and not folder.name.startswith("."):
                yield from _walk(folder)


def _results(study: Path) -> Iterator[Path]:
    """The results inside a study's folder: the folder itself, or folders below it."""
    if _is_results(study):
        yield study
        return
    for folder in sorted(study.iterdir()):
        if folder.is_dir() and not folder.name.startswith("."):
            yield from _results(folder)


def _is_results(path: Path) -> bool:
    # A corpus has a manifest as well, but no rows.
    return (path / MANIFEST).is_file() and (path / ROWS).is_dir()
