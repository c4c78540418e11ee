"""The last corpus and the last language model stay loaded, as long as their files stay as they are.

Cross-validation would otherwise load them once a fold.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from zicl.lm.base import LanguageModel
from zicl.lm.load import load_lm
from zicl.retrieve.index import Index

# The files of a model: weights, configuration and tokenizer.
_READ = (".safetensors", ".bin", ".gguf", ".json", ".model", ".txt")


def cached_index(path: Path, offline: bool) -> Index:
    """The index of a folder; its encoder and its answers stay with it."""
    notes = [path / "manifest.json", path / "index" / "manifest.json"]
    return _opened(path.resolve(), tuple(n.stat().st_mtime_ns for n in notes if n.exists()), offline)


@lru_cache(maxsize=1)
def _opened(path: Path, stamp: tuple[int, ...], offline: bool) -> Index:
    return Index.open(path, offline=offline)


def cached_lm(spec: str, device: str, dtype: str, batch_size: int, offline: bool) -> LanguageModel:
    """The model of a name, a folder or a file."""
    return _loaded(spec, _stamp(spec), device, dtype, batch_size, offline)


@lru_cache(maxsize=1)
def _loaded(
    spec: str, stamp: tuple[Any, ...], device: str, dtype: str, batch_size: int, offline: bool
) -> LanguageModel:
    return load_lm(spec, device=device, dtype=dtype, batch_size=batch_size, offline=offline)


def _stamp(spec: str) -> tuple[Any, ...]:
    """Which files a name stands for now, and when they were written; nothing for a name that is no path."""
    path = Path(spec.removeprefix("gguf:")).expanduser()
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in files if file.suffix in _READ and file.is_file()]
    found = ((file.name, file.stat()) for file in files)
    return (path.resolve() if files else None, *((name, stat.st_mtime_ns, stat.st_size) for name, stat in found))
