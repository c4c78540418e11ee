"""Change a corpus together with its index: add domains, free the space of removed ones, build another kind of index.

The changed corpus is written to a folder beside it, where only new sentences are embedded, and moved into place when
it is complete. A killed change leaves the corpus as it was, and resumes when it is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zicl._util.files import exists_error, read_json, write_json
from zicl._util.locks import clear_folder, publish, remove_finished, work_folder
from zicl._util.progress import ProgressReport, silent
from zicl.corpus.builder import build_key
from zicl.corpus.manifest import MANIFEST, read_manifest
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import Source
from zicl.corpus.store import Corpus
from zicl.corpus.update import add_text, check_new_domains, write_compacted
from zicl.exceptions import ConfigError, EmptyCorpusError, StorageError
from zicl.retrieve.builder import FOLDER, VECTORS, ReusableVectors, build_index
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import Index
from zicl.retrieve.kinds import COMPRESSED, Kind, auto_kind, check_kind, read_vectors
from zicl.retrieve.search import SearchParams


def add_domains(
    path: str | Path,
    sources: Sequence[Source],
    *,
    output: str | Path | None = None,
    text_column: str | None = None,
    domain_paragraphs: Mapping[str, int] | None = None,
    encoder: Encoder | None = None,
    offline: bool = False,
    report: ProgressReport = silent,
) -> Corpus:
    """Add new domains to a corpus, and to its index if it has one, in place or as the corpus ``output``.

    They are split and sampled with the options the corpus was built with; ``domain_paragraphs`` gives new domains
    another maximum number of paragraphs. The result is the same as building the corpus from all its sources, these
    last.
    """
    old = Corpus.open(path)
    remove_finished(old.path.resolve() if output is None else Path(output), MANIFEST)
    check_new_domains(old, sources)
    # Change the corpus that a link leads to, not the link.
    target = old.path.resolve() if output is None else Path(output)
    if output is not None and target.exists():
        raise exists_error(target)
    options = BuildOptions(**old.manifest["options"])
    options = replace(options, domain_paragraphs={**options.domain_paragraphs, **(domain_paragraphs or {})})
    options = options if text_column is None else replace(options, text_column=text_column)
    index = _open_index(old, encoder, offline)
    if index is not None:
        # Notice a missing or wrong encoder before any text is read.
        report("loading the encoder", 0, None, index.manifest["encoder"]["name"])
        _ = index.encoder
    resumable = all(source.path != "-" for source in sources)
    key = f"add {old.text_hash} {build_key(sources, options)}" if resumable else None
    with _change(target, key, old) as work:
        changed = _changed_text(work, lambda: add_text(old, sources, options, work, report))
        if index is not None:
            _rebuild_index(changed, index, report)
        publish(changed.path, target, MANIFEST)
    return Corpus.open(target, verify=False)


def compact(
    path: str | Path, *, encoder: Encoder | None = None, offline: bool = False, report: ProgressReport = silent
) -> Corpus:
    """Free the space of removed domains: rows get the numbers they have in a corpus built without these domains."""
    old = Corpus.open(path)
    remove_finished(old.path.resolve(), MANIFEST)
    if old.subset.is_everything:
        return old
    index = _open_index(old, encoder, offline)

    def write_rest() -> Path:
        write_compacted(old, work / "whole", report)
        return work / "whole"

    with _change(old.path.resolve(), f"compact {old.hash}", old) as work:
        changed = _changed_text(work, write_rest)
        if index is not None:
            _rebuild_index(changed, index, report)
        publish(changed.path, old.path.resolve(), MANIFEST)
    return Corpus.open(path, verify=False)


def change_kind(
    path: str | Path,
    kind: Kind,
    *,
    encoder: Encoder | None = None,
    offline: bool = False,
    report: ProgressReport = silent,
) -> Index:
    """Build another kind of index from the vectors of the present one: hardly any sentence is embedded again."""
    index = Index.open(path, encoder=encoder, offline=offline)
    chosen = auto_kind(kind, len(index.indexed()))
    if index.manifest["kind"] in COMPRESSED and chosen not in COMPRESSED:
        raise ConfigError(
            f"this index has its vectors in half precision, and {chosen} needs full precision",
            hint=f"embed the sentences again: zicl index build {path} --kind {chosen}",
        )
    build_index(index.corpus, _RecordedEncoder(index), kind=kind, reuse=_reusable_vectors(index), report=report)
    return Index.open(path, encoder=encoder, offline=offline)


@contextmanager
def _change(target: Path, key: str | None, old: Corpus) -> Iterator[Path]:
    """Lock a work folder beside ``target``; files that a killed change with the same key left there are kept."""
    with work_folder(target, f"{target} is being changed by another process") as work:
        if read_manifest(old.path) != old.manifest:
            raise StorageError(f"{old.path} was changed by another process meanwhile", hint="run it again")
        state = work / "state.json"
        if key is None or not state.is_file() or read_json(state) != {"change": key}:
            clear_folder(work)
            write_json(state, {"change": key})
        try:
            yield work
        except EmptyCorpusError:
            clear_folder(work)
            raise


def _changed_text(work: Path, write: Callable[[], Path]) -> Corpus:
    """Return the changed corpus without its index, written unless a killed change had finished it."""
    folder = work / "whole"
    return Corpus.open(folder if (folder / MANIFEST).is_file() else write(), verify=False)


def _open_index(corpus: Corpus, encoder: Encoder | None, offline: bool) -> Index | None:
    if not (corpus.path / FOLDER).is_dir():
        return None
    return Index.open(corpus.path, encoder=encoder, offline=offline)


def _rebuild_index(changed: Corpus, old: Index, report: ProgressReport) -> None:
    """Build the index of the changed corpus, with the kind and search parameters of the old index and its vectors."""
    if (changed.path / FOLDER / MANIFEST).is_file():
        remove_finished(changed.path / FOLDER, MANIFEST)
        return
    build_index(
        changed,
        _RecordedEncoder(old),
        kind=check_kind(old.manifest["kind"]),
        reuse=_reusable_vectors(old),
        params=SearchParams.from_manifest(old.manifest),
        report=report,
    )


def _reusable_vectors(index: Index) -> ReusableVectors:
    """Return the vectors of an index in the order of its rows."""
    ids, (embedded, duplicates) = index.vector_ids(), index.replaced_rows()
    if len(ids) != len(index.corpus.indexed):
        raise StorageError(
            f"the index of {index.corpus.path} has {len(ids)} vectors for {len(index.corpus.indexed)} sentences",
            hint=f"build it again: zicl index build {index.corpus.path}",
        )
    # A duplicate shares the vector of the embedded row, unless capitals differ: an encoder may tell them apart.
    pairs = zip(*(index.corpus.texts(rows.tolist()) for rows in (embedded, duplicates)), strict=True)
    different = duplicates[np.array([one != other for one, other in pairs], dtype=bool)]
    ids[np.searchsorted(index.corpus.indexed, different)] = -1
    return ReusableVectors(read_vectors(index.manifest["kind"], index.corpus.path / FOLDER / VECTORS), ids)


class _RecordedEncoder:
    """The encoder that an index was built with, loaded only if a sentence has to be embedded."""

    def __init__(self, index: Index) -> None:
        recorded = index.manifest["encoder"]
        self.name, self.identity, self.dimension = recorded["name"], recorded["identity"], recorded["dimension"]
        self._index = index

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._index.encoder.encode(texts)
