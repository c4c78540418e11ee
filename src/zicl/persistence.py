"""Save a classifier as a small readable folder and read it back: no pickle, everything checked on loading.

tickets.zicl-clf/
  labels.toml        labels, words, synonyms, descriptions
  pile.safetensors   what was learned from a pile, if anything: a row of weights per label
  classifier.json    settings, names and hashes of the models, the corpus' path and hash, what was fitted; written last

Nothing here loads a model: ``zicl.classifier.load`` does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from zicl._util.files import (
    atomic_write,
    check_inside,
    check_replaceable,
    exists_error,
    read_json,
    write_json,
    write_text,
)
from zicl._util.process import __version__
from zicl._util.schema import check_schema
from zicl.config import (
    GROUPS,
    FrozenSettings,
    Settings,
)
from zicl.corpus.manifest import read_manifest
from zicl.corpus.store import stored_hash
from zicl.exceptions import (
    CorpusDamagedError,
    CorpusError,
    CorpusMissingError,
    EncoderMismatchError,
    StorageError,
    UsageError,
)
from zicl.lm.base import LanguageModel
from zicl.prompt.labels import Labels, read_labels
from zicl.retrieve.concat import ConcatIndex
from zicl.retrieve.index import Index, Searchable
from zicl.score.ensemble import Fitted
from zicl.score.manifest import ClassifierContent, CorpusEntry, KindOfContent, ModelEntry, PileEntry
from zicl.score.pile import Linear, PileModel

FORMAT = 5
LABELS, CLASSIFIER, PILE = "labels.toml", "classifier.json", "pile.safetensors"
Content = TypeVar("Content", bound=BaseModel)
_AGAIN = "it was edited, damaged, or written by another version of zicl: copy the folder again, or save it again"


# -- writing -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassifierState:
    """Everything that a fitted classifier's predictions depend on.

    ``encoder`` is the name and the identity of the encoder expert's encoder, if it is part of the ensemble.
    """

    labels: Labels
    lm: LanguageModel | None
    index: Searchable | None
    method: str
    seed: int
    settings: Settings
    fitted: Fitted
    encoder: tuple[str, str] | None

    def fingerprint(self) -> dict[str, Any]:
        """Return all that predictions depend on as plain values: equal ones give equal predictions."""
        return {
            "labels": self.labels.to_toml(),
            "lm": None if self.lm is None else self.lm.identity,
            "corpus": _index_identity(self.index),
            "seed": self.seed,
            "fitted": self._learned(),
            "encoder": None if self.encoder is None else self.encoder[1],
            **{name: value.model_dump(mode="json") for name, value in self.settings._asdict().items()},
        }

    def _learned(self) -> dict[str, Any]:
        """Return what was learned; a pile by what it was learned from, since last digits differ between machines."""
        learned, pile = self.fitted.to_dict(), self.fitted.pile
        return learned if pile is None else {**learned, "pile": {"source": pile.source, "texts": pile.texts}}

    def save(self, path: str | Path) -> Path:
        """Write a new folder; one that holds exactly the same is left as it is."""
        folder = Path(path)
        pile = self.fitted.pile

        def add(target: Path) -> None:
            if pile is not None:
                write_linear(pile.linear, target / PILE)

        return write_folder(folder, self._content(folder), self.labels.to_toml(), add=add)

    def _content(self, folder: Path) -> dict[str, Any]:
        index, corpus = self.index, None
        if index is not None and not isinstance(index, Index):
            raise UsageError(
                "a classifier whose corpus was extended in memory cannot be saved",
                hint="build a corpus that holds those texts (zicl corpus build), and use that",
            )
        if index is not None and not index.corpus.as_stored:
            raise UsageError(
                "a classifier on a part of a corpus cannot be saved",
                hint="use the whole corpus, or one without those domains (zicl corpus remove)",
            )
        if index is not None:
            corpus = {
                "path": relative_path(folder, index.corpus.path),
                "hash": index.corpus.hash,
                "encoder": index.manifest["encoder"],
                "kind": index.manifest["kind"],
                "index": index.identity,
            }
        return {
            "format": FORMAT,
            "zicl": __version__,
            "labels": list(self.labels.names),
            "corpus": corpus,
            "lm": None if self.lm is None else _lm_content(folder, self.lm),
            "method": self.method,
            "seed": self.seed,
            "settings": {name: value.model_dump() for name, value in self.settings._asdict().items()},
            "fitted": self.fitted.to_dict(),
            "encoder": None if self.encoder is None else encoder_content(folder, *self.encoder),
        }


def _lm_content(folder: Path, lm: LanguageModel) -> dict[str, Any]:
    name = lm.name
    if Path(name.removeprefix("gguf:")).expanduser().exists():
        place = relative_path(folder, Path(name.removeprefix("gguf:")).expanduser())
        name = f"gguf:{place}" if name.startswith("gguf:") else place
    return {"name": name, "local": name != lm.name, "revision": lm.revision, "identity": lm.identity}


def encoder_content(folder: Path, name: str, identity: str) -> dict[str, Any]:
    """Return what a folder says about its encoder: a local one is found from the folder."""
    local = Path(name).expanduser().exists()
    return {"name": relative_path(folder, Path(name)) if local else name, "local": local, "identity": identity}


def _place(folder: Path, path: str) -> Path:
    """Return where a path leads that is as seen from a folder."""
    try:
        return (folder.resolve() / path).resolve()
    except RuntimeError as error:
        raise UsageError(f"{path}, seen from {folder}, is a link to itself", hint="remove that link") from error


def find_encoder(folder: Path, saved: ModelEntry) -> str:
    """Return the name of the saved encoder, with its path as seen from here."""
    if not saved.local:
        return saved.name
    path = _place(folder, saved.name)
    if not path.exists():
        raise UsageError(
            f"the encoder of {folder.name} is not where it was ({saved.name} seen from it)",
            hint="put it there again, or say where it is now: `encoder=…`",
        )
    return str(path)


def write_linear(linear: Linear, path: Path) -> None:
    """Write the weights of a linear model."""
    from safetensors.numpy import save_file

    save_file({"weights": linear.weights, "offsets": linear.offsets}, path)


def read_linear(path: Path, identity: str, rows: int) -> Linear:
    """Read the weights of a linear model with so many rows, and check that they are those that were written."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    damaged = StorageError(f"{path} is not what was written there", hint=_AGAIN)
    check_inside(path, path.parent)
    try:
        numbers = load_file(path)
        linear = Linear(numbers["weights"], numbers["offsets"])
        fits = linear.weights.ndim == 2 and linear.weights.shape[:1] == linear.offsets.shape == (rows,)
        known = fits and linear.identity == identity
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise damaged from error
    if not known or not (np.isfinite(linear.weights).all() and np.isfinite(linear.offsets).all()):
        raise damaged
    return linear


def check_dimension(folder: Path, linear: Linear, dimension: int) -> None:
    """Check that the weights of a folder are for vectors of this dimension."""
    if linear.weights.shape[1] != dimension:
        raise StorageError(
            f"{folder / PILE} has weights for {linear.weights.shape[1]} dimensions, and the encoder has {dimension}",
            hint=_AGAIN,
        )


def _index_identity(index: Searchable | None) -> str | list[str] | None:
    if isinstance(index, ConcatIndex):
        return [index.base.identity, index.other.identity]
    return index.identity if isinstance(index, Index) else None


def write_folder(
    folder: Path,
    content: dict[str, Any],
    labels: str,
    *,
    add: Callable[[Path], None] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a new folder atomically; one that holds exactly the same is left as it is. ``add`` writes further files."""
    if folder.exists() and not overwrite:
        if _holds(folder, content, labels):
            return folder
        raise exists_error(folder)
    check_replaceable(folder, CLASSIFIER, "a saved classifier")
    with atomic_write(folder) as complete:
        complete.mkdir()
        write_text(complete / LABELS, labels)
        write_json(complete / CLASSIFIER, content)
        if add is not None:
            add(complete)
    return folder


def _holds(folder: Path, content: dict[str, Any], labels: str) -> bool:
    if not (folder / CLASSIFIER).is_file() or not (folder / LABELS).is_file():
        return False
    same = bool(read_json(folder / CLASSIFIER) == json.loads(json.dumps(content)))
    return same and (folder / LABELS).read_text(encoding="utf-8") == labels


def relative_path(folder: Path, path: Path) -> str:
    """Return a path relative to a folder, so that both may be moved together."""
    return os.path.relpath(path.expanduser().resolve(), folder.resolve())


def read_folder(folder: Path) -> ClassifierContent | KindOfContent:
    """Return what classifier.json holds, or raise an error that says why it cannot be used.

    Of a distilled classifier only the kind is read: where it is loaded, ``read_content`` reads the rest.
    """
    content = _read_json(folder)
    if isinstance(content, dict) and "kind" in content:
        return check_schema(content, KindOfContent, folder / CLASSIFIER, UsageError, _AGAIN)
    return check_schema(content, ClassifierContent, folder / CLASSIFIER, UsageError, _AGAIN)


def read_content(folder: Path, model: type[Content]) -> Content:
    """Return what the classifier.json of a kind of classifier holds, by its schema."""
    return check_schema(_read_json(folder), model, folder / CLASSIFIER, UsageError, _AGAIN)


def saved_lm(folder: Path) -> ModelEntry | None:
    """Return the language model that a saved classifier asks, if any."""
    content = read_folder(folder)
    return content.lm if isinstance(content, ClassifierContent) else None


def _read_json(folder: Path) -> Any:
    """Read classifier.json, and check that it has the format of this version."""
    path = folder / CLASSIFIER
    if not path.is_file():
        raise UsageError(
            f"{folder} is not a saved classifier", hint="save one with clf.save(…) or zicl classify --save …"
        )
    check_inside(path, folder, UsageError)
    content = read_json(path, UsageError, hint=_AGAIN)
    found = content.get("format") if isinstance(content, dict) else FORMAT
    if found != FORMAT:
        raise UsageError(
            f"{folder} has format {found!s:.20}; this version of zicl reads format {FORMAT}",
            hint=f"install the version that wrote it: zicl {content.get('zicl')!s:.20}",
        )
    return content


def read_saved_labels(folder: Path) -> Labels:
    """Read the labels of a folder."""
    check_inside(folder / LABELS, folder, UsageError)
    return read_labels(folder / LABELS)


def restore_settings(folder: Path, content: ClassifierContent) -> tuple[dict[str, FrozenSettings], Fitted, Labels]:
    """Return the settings by group, what was fitted, and the labels of a folder."""
    settings = {name: getattr(content.settings, name) for name in GROUPS}
    labels = read_saved_labels(folder)
    pile = _read_pile(folder, content.fitted.pile, len(labels))
    fitted = Fitted.from_dict(content.fitted.model_dump(), pile)
    check_label_names(folder, labels, *fitted.priors.values())
    if fitted.pile is not None:
        # Rows of weights belong to labels by position.
        check_label_names(folder, labels, content.labels)
        labels = Labels(tuple(labels[name] for name in content.labels))
    return settings, fitted, labels


def _read_pile(folder: Path, saved: PileEntry | None, labels: int) -> PileModel | None:
    if saved is None:
        return None
    # Texts that fit no label may be a component of their own.
    component = saved.none is not None and saved.none.component
    rows = labels + component
    expected = {"shares": len(saved.shares)}
    if saved.multi is not None:
        expected |= {"slopes": len(saved.multi.slopes), "offsets": len(saved.multi.offsets)}
    if wrong := [name for name, count in expected.items() if count != (rows if name == "shares" else labels)]:
        raise UsageError(
            f"{folder / CLASSIFIER}: fitted.pile.{wrong[0]}: it has {expected[wrong[0]]} numbers for {labels} labels",
            hint=_AGAIN,
        )
    return PileModel.from_dict(saved.model_dump(), read_linear(folder / PILE, saved.weights, rows))


def check_label_names(folder: Path, labels: Labels, *fitted: Iterable[str]) -> None:
    """Check that the labels of a folder are those that something was fitted for."""
    for names in fitted:
        if set(names) != set(labels.names):
            raise UsageError(
                f"{folder / LABELS} names {', '.join(labels.names)}, but {', '.join(names)} were fitted",
                hint="undo the change of that file, or make the classifier again with these labels",
            )


def find_lm(folder: Path, lm: ModelEntry) -> str:
    """Return the name of the saved language model, with its path as seen from here."""
    if not lm.local:
        return lm.name
    prefix = "gguf:" if lm.name.startswith("gguf:") else ""
    return prefix + str(_place(folder, lm.name.removeprefix("gguf:")))


def find_corpus(
    folder: Path, corpus: CorpusEntry | None, given: str | Path | Index | None, *, offline: bool
) -> Index | None:
    """Open the corpus of a folder, or the ``given`` one in its place, and check that it is the same."""
    if corpus is None:
        # It shows no demonstrations, but the encoder expert may use the corpus' encoder.
        return Index.open(given, offline=offline) if isinstance(given, str | Path) else given
    as_saved = given is None
    if given is None:
        given = place = _place(folder, corpus.path)
        if not place.exists():
            raise CorpusMissingError(
                f"the corpus of {folder.name} is not where it was ({corpus.path} seen from it)",
                hint="say where it is now: `index=…`",
            )
        # What a stranger's classifier leads to is not opened unless it is what the classifier was made on.
        _check_corpus(folder, corpus, place, stored_hash(read_manifest(place)))
    index = given if isinstance(given, Index) else Index.open(given, offline=offline)
    _check_corpus(folder, corpus, index.corpus.path, index.corpus.hash)
    if index.manifest["encoder"]["identity"] != corpus.encoder.identity:
        raise EncoderMismatchError(
            f"{folder.name} was saved on vectors of {corpus.encoder.name}, but {index.corpus.path} is indexed "
            f"with {index.manifest['encoder']['name']}",
            hint=f"zicl index build {index.corpus.path} --encoder {corpus.encoder.name}",
        )
    if as_saved and corpus.index != index.identity:
        # It may find other neighbours of the same text.
        raise CorpusError(
            f"{index.corpus.path} is not searched as when {folder.name} was saved: its index "
            f"({corpus.kind} then, {index.manifest['kind']} now) was built or tuned again",
            hint="to use it as it is now, name the corpus: `index=…`",
        )
    return index


def _check_corpus(folder: Path, corpus: CorpusEntry, path: Path, found: str) -> None:
    """Check that the corpus at a path has the hash that a classifier was saved with."""
    if found == corpus.hash:
        return
    if path.resolve() == _place(folder, corpus.path):
        raise CorpusDamagedError(
            f"{path} has changed since {folder.name} was saved",
            hint="undo the change (a domain that was added: zicl corpus remove, then compact), or make the "
            "classifier again on the corpus as it is",
        )
    raise CorpusDamagedError(
        f"{path} is not the corpus {folder.name} was saved with",
        hint="find the corpus it was made on, or make the classifier again on this one",
    )
