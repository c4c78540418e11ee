"""A distilled classifier as a small folder: no pickle, everything checked on loading.

tickets-fast.zicl-clf/
  labels.toml             labels, words, synonyms, descriptions
  weights.safetensors     one row of weights and one offset a label, float64
  classifier.json         kind, encoder, hash of the weights, and what it was distilled from; written last
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zicl import __version__
from zicl.apps.distill.classifier import DistilledClassifier
from zicl.apps.distill.linear import Linear
from zicl.apps.distill.origin import Origin
from zicl.classifier_folder import CLASSIFIER, DISTILLED, FORMAT, LABELS, check_names, seen_from, write_folder
from zicl.exceptions import EncoderMismatchError, StorageError, UsageError
from zicl.prompt.labels import Labels, read_labels
from zicl.retrieve.encoder import Encoder, load_encoder

_WEIGHTS = "weights.safetensors"


def save(classifier: DistilledClassifier, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a classifier to a new folder; one that holds the very same is left as it is."""
    from safetensors.numpy import save_file

    folder, linear = Path(path), classifier.linear

    def add(whole: Path) -> None:
        save_file({"weights": linear.weights, "offsets": linear.offsets}, whole / _WEIGHTS)

    # The hash of the weights is in the content.
    content = _content(classifier, folder)
    return write_folder(folder, content, classifier.labels_.to_toml(), add=add, overwrite=overwrite)


def _content(classifier: DistilledClassifier, folder: Path) -> dict[str, Any]:
    encoder, name, origin = classifier.encoder, classifier.encoder.name, classifier.origin
    if Path(name).expanduser().exists():
        name = seen_from(folder, Path(name))
    return {
        "format": FORMAT,
        "kind": DISTILLED,
        "zicl": __version__,
        "encoder": {"name": name, "local": name != encoder.name, "identity": encoder.identity},
        "weights": classifier.linear.identity,
        # A row of weights is a label's by its place.
        "labels": list(classifier.labels_.names),
        "distilled": None if origin is None else origin.to_dict(),
    }


def load(
    folder: Path, content: dict[str, Any], *, encoder: str | Encoder | None = None, offline: bool = False
) -> DistilledClassifier:
    """The classifier in a folder whose classifier.json holds ``content``; ``encoder`` says where it is now."""
    linear = _read_weights(folder, content["weights"])
    try:
        origin = None if content["distilled"] is None else Origin.of(content["distilled"])
    except (TypeError, KeyError) as error:
        raise UsageError(
            f"{folder / CLASSIFIER}: {error}", hint="it was edited, or written by another version of zicl"
        ) from error
    known = content["encoder"]
    found = _find_encoder(folder, known) if encoder is None else encoder
    model = load_encoder(found, offline=offline) if isinstance(found, str) else found
    if model.identity != known["identity"]:
        raise EncoderMismatchError(
            f"the encoder {model.name} is not the one {folder.name} was distilled with, {known['name']}",
            hint="its weights or tokenizer changed: get the old ones, or distil again",
        )
    labels = read_labels(folder / LABELS)
    # Folders of before name none.
    names = content.get("labels", list(labels.names))
    check_names(folder, labels, names)
    labels = Labels(tuple(labels[name] for name in names))
    return DistilledClassifier(linear, labels, model, origin).fit()


def _find_encoder(folder: Path, known: dict[str, Any]) -> str:
    if not known["local"]:
        return str(known["name"])
    place = (folder.resolve() / known["name"]).resolve()
    if not place.exists():
        raise UsageError(
            f"the encoder of {folder.name} is not where it was ({known['name']} seen from it)",
            hint="put it there again, or say where it is now: zicl.load(…, encoder=…)",
        )
    return str(place)


def _read_weights(folder: Path, identity: str) -> Linear:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    damaged = StorageError(
        f"{folder / _WEIGHTS} is not what was written there", hint="copy the folder again, or distil again"
    )
    try:
        numbers = load_file(folder / _WEIGHTS)
        linear = Linear(numbers["weights"], numbers["offsets"])
    except (OSError, SafetensorError, KeyError) as error:
        raise damaged from error
    if linear.identity != identity:
        raise damaged
    return linear
