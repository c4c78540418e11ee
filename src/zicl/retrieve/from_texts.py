"""Make a searchable corpus from texts in memory, cached by content so that they are embedded once."""

from __future__ import annotations

import json
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from zicl._util.files import atomic_write, home
from zicl._util.process import __version__
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import stable_hash
from zicl.corpus.builder import build_corpus
from zicl.corpus.manifest import FORMAT
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import find_sources
from zicl.retrieve.builder import build_index
from zicl.retrieve.encoder import DEFAULT_ENCODER, Encoder, load_encoder
from zicl.retrieve.index import Index


def index_texts(
    texts: Sequence[str],
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    keep: bool = True,
    offline: bool = False,
    report: ProgressReport = silent,
) -> Index:
    """Build the corpus of ``texts``, one document each, or open it from the cache.

    Without ``keep`` its files are removed once the index is no longer used.
    """
    model = load_encoder(encoder, offline=offline) if isinstance(encoder, str) else encoder
    if not keep:
        scratch = tempfile.TemporaryDirectory(prefix="zicl-", ignore_cleanup_errors=True)
        index = _build(texts, Path(scratch.name) / "texts.zicl", model, report)
        weakref.finalize(index, scratch.cleanup)
        return index
    folder = home() / "corpora" / f"{stable_hash(FORMAT, __version__, model.identity, *texts):032x}.zicl"
    if not folder.exists():
        with atomic_write(folder, replace=False) as temporary:
            _build(texts, temporary, model, report)
    return Index.open(folder, encoder=model, offline=offline)


def _build(texts: Sequence[str], folder: Path, model: Encoder, report: ProgressReport) -> Index:
    with tempfile.TemporaryDirectory(prefix="zicl-") as scratch:
        source = Path(scratch) / "texts.jsonl"
        source.write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")
        corpus = build_corpus(find_sources([source]), folder, BuildOptions(), report=report)
        build_index(corpus, model, report=report)
    return Index.open(folder, encoder=model)
