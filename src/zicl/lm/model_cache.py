"""Keep the last index, encoder and language model loaded, until their files change.

Without this, cross-validation would load them again for every fold.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from zicl.lm.base import LanguageModel
from zicl.retrieve.embedding import BatchEmbedder
from zicl.retrieve.encoder import Encoder, load_encoder
from zicl.retrieve.index import Index

# The files of a model: weights, configuration and tokenizer.
_SUFFIXES = (".safetensors", ".onnx", ".bin", ".gguf", ".json", ".model", ".txt")


def cached_index(path: Path, offline: bool) -> Index:
    """Return the index of a corpus folder, with its encoder and everything that it caches."""
    manifests = [path / "manifest.json", path / "index" / "manifest.json"]
    return _open_index(path.resolve(), tuple(m.stat().st_mtime_ns for m in manifests if m.exists()), offline)


@lru_cache(maxsize=1)
def _open_index(path: Path, stamp: tuple[int, ...], offline: bool) -> Index:
    return Index.open(path, offline=offline)


def cached_encoder(encoder: str | Encoder, offline: bool) -> Encoder:
    """Return the encoder of a name or a folder; one that is loaded already is returned as it is."""
    return _load_encoder(encoder, _stamp(encoder), offline) if isinstance(encoder, str) else encoder


@lru_cache(maxsize=1)
def _load_encoder(name: str, stamp: tuple[Any, ...], offline: bool) -> Encoder:
    return load_encoder(name, offline=offline)


@lru_cache(maxsize=2)
def cached_embedder(encoder: Encoder) -> BatchEmbedder:
    """Return the embedder of an encoder, with the vectors of recent calls: the same texts are not encoded again."""
    return BatchEmbedder(encoder)


def cached_lm(spec: str, device: str, dtype: str, batch_size: int, offline: bool) -> LanguageModel:
    """Return the language model of a name, a folder or a file."""
    return _load_lm(spec, _stamp(spec), device, dtype, batch_size, offline)


@lru_cache(maxsize=1)
def _load_lm(
    spec: str, stamp: tuple[Any, ...], device: str, dtype: str, batch_size: int, offline: bool
) -> LanguageModel:
    # It imports torch, which methods without a language model do not need.
    from zicl.lm.load import load_lm

    return load_lm(spec, device=device, dtype=dtype, batch_size=batch_size, offline=offline)


def _stamp(spec: str) -> tuple[Any, ...]:
    """Return the files of a model with their sizes and times of change; nothing for a name that is no path."""
    path = Path(spec.removeprefix("gguf:")).expanduser()
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in files if file.suffix in _SUFFIXES and file.is_file()]
    stats = ((file.name, file.stat()) for file in files)
    return (path.resolve() if files else None, *((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats))
