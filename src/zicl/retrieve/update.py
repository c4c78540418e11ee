"""Changing a corpus with its index: adding domains, freeing the space of removed ones, another kind of index.

The changed corpus is written beside its place, embedding only what is new, and moved in when it is whole.
A change that was killed leaves the corpus as it was, and goes on when it is asked for again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zicl._util.files import clear_folder, locked, move_in, read_json, storage_errors, write_json
from zicl._util.progress import ProgressReport, silent
from zicl.corpus.builder import build_key
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import Source
from zicl.corpus.store import MANIFEST, Corpus, read_manifest
from zicl.corpus.update import add_text, check_new_domains, write_compacted
from zicl.exceptions import ConfigError, EmptyCorpusError, StorageError
from zicl.retrieve import kinds as vectors
from zicl.retrieve.builder import FOLDER, VECTORS, ReusableVectors, build_index
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import Index
from zicl.retrieve.kinds import COMPRESSED, Kind
from zicl.retrieve.search import SearchParams


def add_domains(
    path: str | Path,
    sources: Sequence[Source],
    *,
    output: str | Path | None = None,
    text_column: str | None = None,
    encoder: Encoder | None = None,
    offline: bool = False,
    report: ProgressReport = silent,
) -> Corpus:
    """Add new domains to a corpus, and to its index if it has one, in place or as the corpus ``output``.

    It is split and sampled with the options it was built with, and becomes what building it from all its
    sources, these last, would have given.
    """
    old = Corpus.open(path)
    check_new_domains(old, sources)
    # Of a link to a corpus, what it leads to is changed.
    target = old.path.resolve() if output is None else Path(output)
    if output is not None and target.exists():
        raise StorageError(f"{target} exists already", hint="choose another name with -o")
    options = BuildOptions(**old.manifest["options"])
    options = options if text_column is None else replace(options, text_column=text_column)
    index = _index(old, encoder, offline)
    if index is not None:
        # An encoder that is missing or another one is found before anything is read.
        report("loading the encoder", 0, None, index.manifest["encoder"]["name"])
        _ = index.encoder
    again = all(source.path != "-" for source in sources)
    key = f"add {old.text_hash} {build_key(sources, options)}" if again else None
    with _changing(target, key, old) as work:
        whole = _text(work, lambda: add_text(old, sources, options, work, report))
        if index is not None:
            _index_again(whole, index, report)
        move_in(whole.path, target)
    return Corpus.open(target, verify=False)


def compact(
    path: str | Path, *, encoder: Encoder | None = None, offline: bool = False, report: ProgressReport = silent
) -> Corpus:
    """Free the space of removed domains: rows are numbered again, as in a corpus built without them."""
    old = Corpus.open(path)
    if old.part.whole:
        return old
    index = _index(old, encoder, offline)

    def rest() -> Path:
        write_compacted(old, work / "whole", report)
        return work / "whole"

    with _changing(old.path.resolve(), f"compact {old.hash}", old) as work:
        whole = _text(work, rest)
        if index is not None:
            _index_again(whole, index, report)
        move_in(whole.path, old.path.resolve())
    return Corpus.open(path, verify=False)


def change_kind(
    path: str | Path,
    kind: Kind,
    *,
    encoder: Encoder | None = None,
    offline: bool = False,
    report: ProgressReport = silent,
) -> Index:
    """The index of a corpus as another kind, from the vectors it has: hardly anything is embedded again."""
    index = Index.open(path, encoder=encoder, offline=offline)
    chosen = vectors.auto_kind(kind, len(index.indexed()))
    if index.manifest["kind"] in COMPRESSED and chosen not in COMPRESSED:
        raise ConfigError(
            f"this index has its vectors in half precision, and {chosen} keeps them in full",
            hint=f"embed them again: zicl index build {path} --kind {chosen}",
        )
    build_index(index.corpus, _Recorded(index), kind=kind, known=_known(index), report=report)
    return Index.open(path, encoder=encoder, offline=offline)


@contextmanager
def _changing(target: Path, key: str | None, old: Corpus) -> Iterator[Path]:
    """A locked folder beside ``target`` to work in; what a killed change with the same key left there is kept."""
    work = target.with_name(target.name + ".partial")
    with locked(work, f"{target} is being changed by another process"), storage_errors(work):
        if read_manifest(old.path) != old.manifest:
            raise StorageError(f"{old.path} was changed by another process meanwhile", hint="run it again")
        note = work / "state.json"
        if key is None or not note.is_file() or read_json(note) != {"change": key}:
            clear_folder(work)
            write_json(note, {"change": key})
        try:
            yield work
        except EmptyCorpusError:
            shutil.rmtree(work, ignore_errors=True)
            raise
    shutil.rmtree(work, ignore_errors=True)


def _text(work: Path, write: Callable[[], Path]) -> Corpus:
    """The changed text, written unless a killed change had finished it."""
    whole = work / "whole"
    return Corpus.open(whole if (whole / MANIFEST).is_file() else write(), verify=False)


def _index(corpus: Corpus, encoder: Encoder | None, offline: bool) -> Index | None:
    if not (corpus.path / FOLDER).is_dir():
        return None
    return Index.open(corpus.path, encoder=encoder, offline=offline)


def _index_again(whole: Corpus, index: Index, report: ProgressReport) -> None:
    """The index of the changed corpus, of the same kind, from the vectors there are and those of new sentences."""
    if (whole.path / FOLDER / MANIFEST).is_file():
        return
    kind, effort = vectors.check_kind(index.manifest["kind"]), SearchParams.of(index.manifest)
    build_index(whole, _Recorded(index), kind=kind, known=_known(index), effort=effort, report=report)


def _known(index: Index) -> ReusableVectors:
    """The vectors an index has, in the order of its rows."""
    numbers, (made_of, stand_for) = index.numbers(), index.moved()
    if len(numbers) != len(index.corpus.indexed):
        raise StorageError(
            f"the index of {index.corpus.path} has {len(numbers)} vectors for {len(index.corpus.indexed)} sentences",
            hint=f"build it again: zicl index build {index.corpus.path}",
        )
    # A stand-in has its twin's vector; where capitals differ, an encoder may see another sentence.
    pairs = zip(*(index.corpus.texts(rows.tolist()) for rows in (made_of, stand_for)), strict=True)
    unlike = stand_for[np.array([one != other for one, other in pairs], dtype=bool)]
    numbers[np.searchsorted(index.corpus.indexed, unlike)] = -1
    return ReusableVectors(vectors.read_back(index.manifest["kind"], index.corpus.path / FOLDER / VECTORS), numbers)


class _Recorded:
    """The encoder an index was made with, loaded when the first sentence has to be embedded, if any has."""

    def __init__(self, index: Index) -> None:
        about = index.manifest["encoder"]
        self.name, self.identity, self.dimension = about["name"], about["identity"], about["dimension"]
        self._index = index

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._index.encoder.encode(texts)
