"""A classifier as a small readable folder: no pickle, nothing learned, everything checked on loading.

tickets.zicl-clf/
  labels.toml        labels, words, synonyms, descriptions
  classifier.json    settings, the model's name and hash, the corpus' path and hash
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zicl import __version__
from zicl._files import read_json, write_json, write_text, writing
from zicl.classify import ZICLClassifier
from zicl.config import Labelling, PromptSettings, Retrieval, Scoring
from zicl.demos.labels import read_labels
from zicl.exceptions import CorpusDamagedError, CorpusMissingError, ModelError, StorageError, UsageError
from zicl.lm.base import LanguageModel
from zicl.retrieve.index import Index

FORMAT = 1
LABELS, CLASSIFIER = "labels.toml", "classifier.json"
_SETTINGS = {"retrieval": Retrieval, "labelling": Labelling, "prompt": PromptSettings, "scoring": Scoring}


def save(classifier: ZICLClassifier, path: str | Path) -> Path:
    """Write a fitted classifier to a new folder."""
    folder = Path(path)
    if folder.exists():
        raise StorageError(f"{folder} exists already", hint="choose another name, or remove it first")
    index = classifier.index_
    if index is not None and not isinstance(index, Index):
        raise UsageError(
            "a classifier whose corpus was extended in memory cannot be saved",
            hint="build a corpus that holds those texts (zicl corpus build), and use that",
        )
    corpus = None
    if index is not None:
        relative = os.path.relpath(index.corpus.path.resolve(), folder.resolve())
        corpus = {"path": relative, "hash": index.corpus.hash, "encoder": index.manifest["encoder"]}
    content = {
        "format": FORMAT,
        "zicl": __version__,
        "corpus": corpus,
        "lm": {"name": classifier.lm_.name, "identity": classifier.lm_.identity},
        "method": classifier.method,
        "seed": classifier.seed,
        "settings": {name: value.model_dump() for name, value in classifier.settings_.items()},
    }
    with writing(folder) as temporary:
        temporary.mkdir(parents=True)
        write_text(temporary / LABELS, classifier.labels_.to_toml())
        write_json(temporary / CLASSIFIER, content)
    return folder


def load(
    path: str | Path,
    *,
    index: str | Path | Index | None = None,
    lm: str | LanguageModel | None = None,
    offline: bool = False,
) -> ZICLClassifier:
    """Load a saved classifier, ready to predict; ``index`` and ``lm`` say where they are now, if elsewhere."""
    folder = Path(path)
    content = _read(folder)
    try:
        settings = {name: _SETTINGS[name](**_tuples(value)) for name, value in content["settings"].items()}
    except (ValidationError, KeyError) as error:
        raise UsageError(
            f"{folder / CLASSIFIER}: {error}", hint="it was edited, or written by another version of zicl"
        ) from error
    classifier = ZICLClassifier(
        _find_corpus(folder, content["corpus"], index),
        read_labels(folder / LABELS),
        lm or content["lm"]["name"],
        method=content["method"],
        seed=content["seed"],
        offline=offline,
        **settings,
    ).fit()
    if lm is None and classifier.lm_.identity != content["lm"]["identity"]:
        raise ModelError(
            f"the language model {content['lm']['name']} is not the one {folder.name} was saved with",
            hint="its weights or tokenizer changed: get the old ones, or pass lm=… to use these knowingly",
        )
    return classifier


def _read(folder: Path) -> dict[str, Any]:
    if not (folder / CLASSIFIER).is_file():
        raise UsageError(
            f"{folder} is not a saved classifier", hint="save one with clf.save(…) or zicl classify --save …"
        )
    content: dict[str, Any] = read_json(folder / CLASSIFIER)
    if content.get("format") != FORMAT:
        raise UsageError(
            f"{folder} has format {content.get('format')}; this version of zicl reads format {FORMAT}",
            hint=f"install the version that wrote it: zicl {content.get('zicl')}",
        )
    return content


def _find_corpus(folder: Path, corpus: dict[str, Any] | None, given: str | Path | Index | None) -> Index | None:
    if corpus is None:
        return None
    if given is None:
        place = (folder.resolve() / corpus["path"]).resolve()
        if not place.exists():
            raise CorpusMissingError(
                f"the corpus of {folder.name} is not where it was ({corpus['path']} seen from it)",
                hint="say where it is now: zicl.load(…, index=…), or --corpus on the command line",
            )
        given = place
    index = given if isinstance(given, Index) else Index.open(given)
    if index.corpus.hash != corpus["hash"]:
        raise CorpusDamagedError(
            f"{index.corpus.path} is not the corpus {folder.name} was saved with",
            hint="find the corpus it was made on, or make the classifier again on this one",
        )
    return index


def _tuples(value: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples; a template of two lines is one."""
    return {name: tuple(item) if isinstance(item, list) else item for name, item in value.items()}
