"""A classifier as a small readable folder: no pickle, everything checked on loading.

tickets.zicl-clf/
  labels.toml        labels, words, synonyms, descriptions
  classifier.json    settings, the model's name and hash, the corpus' path and hash, and what was learned from texts
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from zicl import __version__
from zicl._util.files import read_json
from zicl.classifier import ZICLClassifier
from zicl.classifier_folder import CLASSIFIER, DISTILLED, FORMAT, LABELS, check_names, seen_from, write_folder
from zicl.config import CALIBRATES, GROUPS
from zicl.exceptions import (
    CorpusDamagedError,
    CorpusError,
    CorpusMissingError,
    EncoderMismatchError,
    ModelError,
    UsageError,
)
from zicl.lm.base import LanguageModel
from zicl.prompt.labels import read_labels
from zicl.retrieve.concat import JointIndex
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import Index, Searchable
from zicl.score.fitted import Fitted

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledClassifier


def save(classifier: ZICLClassifier, path: str | Path) -> Path:
    """Write a fitted classifier to a new folder; one that holds the very same is left as it is."""
    folder = Path(path)
    return write_folder(folder, _content(classifier, folder), classifier.labels_.to_toml())


def _content(classifier: ZICLClassifier, folder: Path) -> dict[str, Any]:
    index, lm, corpus = classifier.index_, classifier.lm_, None
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
            "path": seen_from(folder, index.corpus.path),
            "hash": index.corpus.hash,
            "encoder": index.manifest["encoder"],
            "kind": index.manifest["kind"],
            "index": index.identity,
        }
    name = lm.name
    if Path(name.removeprefix("gguf:")).expanduser().exists():
        place = seen_from(folder, Path(name.removeprefix("gguf:")).expanduser())
        name = f"gguf:{place}" if name.startswith("gguf:") else place
    return {
        "format": FORMAT,
        "zicl": __version__,
        "corpus": corpus,
        "lm": {"name": name, "local": name != lm.name, "revision": lm.revision, "identity": lm.identity},
        "method": classifier.method_,
        "seed": classifier.seed_,
        "settings": {name: value.model_dump() for name, value in classifier.settings_.items()},
        "fitted": classifier.fitted_.to_dict(),
        "opinion": _opinion(classifier),
    }


def _opinion(classifier: ZICLClassifier) -> str | None:
    """The encoder whose opinion is a term, if it is: without demonstrations no corpus names it."""
    opinion = classifier.ensemble_.opinion
    return None if opinion is None else opinion.identity


def depends_on(classifier: ZICLClassifier) -> dict[str, Any]:
    """All that a classifier's answers depend on, as plain values: equal ones give equal answers."""
    return {
        "labels": classifier.labels_.to_toml(),
        "lm": classifier.lm_.identity,
        "corpus": _corpus_identity(classifier.index_),
        "seed": classifier.seed_,
        "fitted": classifier.fitted_.to_dict(),
        "opinion": _opinion(classifier),
        **{name: value.model_dump(mode="json") for name, value in classifier.settings_.items()},
    }


def _corpus_identity(index: Searchable | None) -> str | list[str] | None:
    if isinstance(index, JointIndex):
        return [index.base.identity, index.other.identity]
    return index.identity if isinstance(index, Index) else None


def load(
    path: str | Path,
    *,
    index: str | Path | Index | None = None,
    lm: str | LanguageModel | None = None,
    encoder: str | Encoder | None = None,
    offline: bool = False,
) -> ZICLClassifier | DistilledClassifier:
    """Load a saved classifier, ready to predict.

    ``index`` and ``lm`` say where they are now, if elsewhere; ``encoder`` does so for a distilled classifier, which
    needs neither.
    """
    folder = Path(path)
    content = _read(folder)
    if content.get("kind") == DISTILLED:
        from zicl.apps.distill.store import load as load_distilled

        if index is not None or lm is not None:
            raise UsageError(
                f"{folder.name} is distilled: it needs no corpus and no language model", hint="leave them out"
            )
        return load_distilled(folder, content, encoder=encoder, offline=offline)
    if encoder is not None:
        raise UsageError(
            f"an encoder was given for {folder.name}, which takes its corpus' own", hint="give index=… instead"
        )
    return _load(folder, content, index, lm, offline=offline)


def _load(
    folder: Path,
    content: dict[str, Any],
    index: str | Path | Index | None,
    lm: str | LanguageModel | None,
    *,
    offline: bool,
) -> ZICLClassifier:
    try:
        settings: dict[str, Any] = {name: GROUPS[name](**_tuples(value)) for name, value in _used(content["settings"])}
        fitted = Fitted.of(content["fitted"]) if "fitted" in content else Fitted()
    except (ValidationError, KeyError) as error:
        raise UsageError(
            f"{folder / CLASSIFIER}: {error}", hint="it was edited, or written by another version of zicl"
        ) from error
    labels = read_labels(folder / LABELS)
    check_names(folder, labels, *fitted.priors.values())
    classifier = ZICLClassifier(
        _find_corpus(folder, content["corpus"], index, offline),
        labels,
        lm or _find_lm(folder, content["lm"]),
        method=content["method"],
        seed=content["seed"],
        offline=offline,
        calibrate=settings.pop("calibration", None),
        **settings,
    )._restore(fitted)
    if content.get("opinion") not in (None, _opinion(classifier)):
        raise EncoderMismatchError(
            f"the encoder whose opinion {folder.name} joins is not the one it was saved with",
            hint="name the corpus it was made with: zicl.load(…, index=…), or --corpus on the command line",
        )
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


def _find_lm(folder: Path, lm: dict[str, Any]) -> str:
    if not lm["local"]:
        return str(lm["name"])
    prefix = "gguf:" if lm["name"].startswith("gguf:") else ""
    return prefix + str((folder.resolve() / lm["name"].removeprefix("gguf:")).resolve())


def _find_corpus(
    folder: Path, corpus: dict[str, Any] | None, given: str | Path | Index | None, offline: bool
) -> Index | None:
    if corpus is None:
        # Nothing of it is shown, but its encoder may have an opinion.
        return Index.open(given, offline=offline) if isinstance(given, str | Path) else given
    as_saved = given is None
    if given is None:
        place = (folder.resolve() / corpus["path"]).resolve()
        if not place.exists():
            raise CorpusMissingError(
                f"the corpus of {folder.name} is not where it was ({corpus['path']} seen from it)",
                hint="say where it is now: zicl.load(…, index=…), or --corpus on the command line",
            )
        given = place
    index = given if isinstance(given, Index) else Index.open(given, offline=offline)
    if index.corpus.hash != corpus["hash"]:
        if index.corpus.path.resolve() == (folder.resolve() / corpus["path"]).resolve():
            raise CorpusDamagedError(
                f"{index.corpus.path} has changed since {folder.name} was saved",
                hint="undo the change (a domain that was added: zicl corpus remove, then compact), or make the "
                "classifier again on the corpus as it is",
            )
        raise CorpusDamagedError(
            f"{index.corpus.path} is not the corpus {folder.name} was saved with",
            hint="find the corpus it was made on, or make the classifier again on this one",
        )
    if index.manifest["encoder"]["identity"] != corpus["encoder"]["identity"]:
        raise EncoderMismatchError(
            f"{folder.name} was saved on vectors of {corpus['encoder']['name']}, but {index.corpus.path} is indexed "
            f"with {index.manifest['encoder']['name']}",
            hint=f"zicl index build {index.corpus.path} --encoder {corpus['encoder']['name']}",
        )
    if as_saved and corpus.get("index", index.identity) != index.identity:
        # It may find other neighbours of the same text.
        raise CorpusError(
            f"{index.corpus.path} is not searched as when {folder.name} was saved: its index "
            f"({corpus['kind']} then, {index.manifest['kind']} now) was built or tuned again",
            hint="to use it as it is now, name the corpus: zicl.load(…, index=…), or --corpus on the command line",
        )
    return index


def _used(settings: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The settings without those that change nothing under the calibration's method: folders of before have them."""
    for name, values in settings.items():
        others = [n for n, m in CALIBRATES.items() if name == "calibration" and m != values.get("method")]
        yield name, {key: value for key, value in values.items() if key not in others}


def _tuples(value: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples; a template of two lines is one."""
    return {name: tuple(item) if isinstance(item, list) else item for name, item in value.items()}
