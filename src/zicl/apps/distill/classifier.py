"""What a distilled classifier says about a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from zicl._util.process import __version__
from zicl._util.progress import Progress
from zicl.apps.distill.agreement import Agreement
from zicl.apps.distill.train import Linear
from zicl.classifier import TextClassifier, binary_difference
from zicl.exceptions import ConfigError, EncoderMismatchError, StorageError, UsageError
from zicl.inputs.pair import Text
from zicl.inputs.texts import check_texts
from zicl.persistence import CLASSIFIER, FORMAT, LABELS, check_label_names, relative_path, write_folder
from zicl.prompt.labels import Labels, read_labels
from zicl.prompt.template import Template, get_template
from zicl.retrieve.encoder import Encoder, Vectors, load_encoder
from zicl.score.calibration import Scores, log_softmax


@dataclass(frozen=True)
class DistilledPrediction:
    """One classified text. Probabilities stand in the order of the labels.

    >>> answer = DistilledPrediction("It rained.", {"dull": 0.7, "fine": 0.3})
    >>> answer.label, round(answer.margin, 3)
    ('dull', 0.4)
    """

    text: Text
    probabilities: Mapping[str, float]

    @cached_property
    def label(self) -> str:
        """The label of the highest probability."""
        return max(self.probabilities, key=lambda name: self.probabilities[name])

    @cached_property
    def margin(self) -> float:
        """How far the first probability is above the second."""
        first, second = sorted(self.probabilities.values(), reverse=True)[:2]
        return first - second


# -- What is left of the language model: one row of weights a label, over the encoder's vectors.


# -- Where a distilled classifier comes from: kept with it, so that nobody has to guess what it repeats, and how well.


@dataclass(frozen=True)
class DistillationRecord:
    """What it was distilled from, and how.

    ``lm`` is the language model's name and ``teacher`` all its answers depended on, its identity, settings and seed
    among them. Of the ``texts`` that were given, ``distinct`` are different, the model was asked about ``sample``, and
    ``trained`` of those were learned from with scikit-learn's C at ``strength``, the best of ``losses``; the rest are
    the rows of ``agreement``.
    """

    lm: str
    teacher: Mapping[str, Any]
    texts: int
    distinct: int
    sample: int
    trained: int
    strength: float
    losses: tuple[tuple[float, float], ...]
    agreement: Agreement

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> DistillationRecord:
        """From what ``to_dict`` gave, also by way of JSON, which has no tuples."""
        losses = tuple((float(strength), float(loss)) for strength, loss in values["losses"])
        return cls(**{**values, "losses": losses, "agreement": Agreement.of(values["agreement"])})


# -- Many texts through the encoder, a piece at a time.


# Long enough that batches of texts of about one length can be formed, short enough to say how far it is.
_PIECE = 1024


def encode_in_chunks(encoder: Encoder, texts: Sequence[Text]) -> Iterator[Vectors]:
    """The vectors of the texts, in their order, in pieces; a pair is one text. Space around a text does not count."""
    for start in range(0, len(texts), _PIECE):
        yield encoder.encode([str(text.strip()) for text in texts[start : start + _PIECE]])


# -- DistilledClassifier: a language model's answers at the encoder's speed, with scikit-learn's contract.


class DistilledClassifier(TextClassifier):
    """A linear model over an encoder's vectors, which learned from a language model's answers.

    ``zicl.apps.distill.run.distill`` makes one and ``zicl.load`` reads one. ``fit`` learns nothing: it only checks.

    Parameters
    ----------
    linear : the weights, a row a label in the order of ``labels``
    labels : the labels
    encoder : what turns texts into vectors
    origin : what it was distilled from, and how well it repeats that

    Attributes
    ----------
    classes_ : label names, sorted, the order of all columns
    labels_ : the labels

    Texts are encoded in batches, which may change the last digits of a vector: a probability depends on the other
    texts by less than 1e-4.

    """

    def __init__(
        self, linear: Linear, labels: Labels, encoder: Encoder, origin: DistillationRecord | None = None
    ) -> None:
        self.linear = linear
        self.labels = labels
        self.encoder = encoder
        self.origin = origin

    def fit(self, X: Iterable[Any] | None = None, y: Iterable[str] | None = None) -> DistilledClassifier:
        """Check that weights, labels and encoder belong together; ``X`` and ``y`` are not used."""
        wanted = (len(self.labels), self.encoder.dimension)
        if self.linear.weights.shape != wanted or self.linear.offsets.shape != wanted[:1]:
            raise ConfigError(
                f"the weights are made for (labels, dimensions) of {self.linear.weights.shape}, but there are {wanted}",
                hint="give the labels and the encoder it was distilled with",
            )
        self.labels_ = self.labels
        self.classes_ = np.array(sorted(self.labels.names), dtype=object)
        return self

    @property
    def of_pairs(self) -> bool | None:
        """Whether it learned from pairs of texts; None where it is not known what it was distilled from."""
        if self.origin is None:
            return None
        template = self.origin.teacher["prompt"]["template"]
        if template == "auto":
            # It picks templates of single texts.
            return False
        return (get_template(template) if isinstance(template, str) else Template(*template)).two_fields

    def classify(self, X: Iterable[Any], progress: Progress | None = None) -> list[DistilledPrediction]:
        """Labels with probabilities and margins, in the order of ``X``."""
        texts, names = check_texts(X), self.labels.names
        shares = np.exp(log_softmax(self._scores(texts, progress)))
        return [
            DistilledPrediction(text.strip(), dict(zip(names, row, strict=True)))
            for text, row in zip(texts, shares.tolist(), strict=True)
        ]

    def decision_function(self, X: Iterable[Any]) -> NDArray[np.float64]:
        """What is compared, a column a label in the order of ``classes_``; of two labels the second less the first."""
        return binary_difference(self._columns(self._scores(check_texts(X))))

    def predict_proba(self, X: Iterable[Any]) -> NDArray[np.float64]:
        """The softmax of what is compared, a column a label in the order of ``classes_``."""
        return self._columns(np.exp(log_softmax(self._scores(check_texts(X)))))

    def predict(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """The label of the highest score."""
        best = self._scores(check_texts(X)).argmax(axis=1)
        return np.array([self.labels.names[int(n)] for n in best], dtype=object)

    def _scores(self, texts: list[Text], progress: Progress | None = None) -> Scores:
        """One column a label, in the order of the labels."""
        check_is_fitted(self, "classes_")
        parts: list[Scores] = [np.empty((0, len(self.labels)))]
        for vectors in encode_in_chunks(self.encoder, texts):
            parts.append(self.linear.scores(vectors))
            if progress is not None:
                progress(len(vectors))
        return np.concatenate(parts)

    def _columns(self, rows: Scores) -> NDArray[np.float64]:
        return rows[:, [self.labels.names.index(name) for name in self.classes_]]

    def fingerprint(self) -> dict[str, Any]:
        """Return all that predictions depend on as plain values."""
        return {
            "labels": self.labels.to_toml(),
            "distilled": self.linear.identity,
            "encoder": self.encoder.identity,
        }

    def save(self, path: str | Path) -> Path:
        """Write a small folder that ``zicl.load`` and ``zicl classify --with`` take."""
        check_is_fitted(self, "classes_")
        return save_distilled(self, path)


# -- A distilled classifier as a small folder: no pickle, everything checked on loading.


_WEIGHTS = "weights.safetensors"


def save_distilled(classifier: DistilledClassifier, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a classifier to a new folder; one that holds the very same is left as it is."""
    from safetensors.numpy import save_file

    folder, linear = Path(path), classifier.linear

    def add(whole: Path) -> None:
        save_file({"weights": linear.weights, "offsets": linear.offsets}, whole / _WEIGHTS)

    # The hash of the weights is in the content.
    content = _saved_content(classifier, folder)
    return write_folder(folder, content, classifier.labels_.to_toml(), add=add, overwrite=overwrite)


def _saved_content(classifier: DistilledClassifier, folder: Path) -> dict[str, Any]:
    encoder, name, origin = classifier.encoder, classifier.encoder.name, classifier.origin
    if Path(name).expanduser().exists():
        name = relative_path(folder, Path(name))
    return {
        "format": FORMAT,
        "kind": "distilled",
        "zicl": __version__,
        "encoder": {"name": name, "local": name != encoder.name, "identity": encoder.identity},
        "weights": classifier.linear.identity,
        # A row of weights is a label's by its place.
        "labels": list(classifier.labels_.names),
        "distilled": None if origin is None else origin.to_dict(),
    }


def load_distilled(
    folder: Path, content: dict[str, Any], *, encoder: str | Encoder | None = None, offline: bool = False
) -> DistilledClassifier:
    """The classifier in a folder whose classifier.json holds ``content``; ``encoder`` says where it is now."""
    linear = _read_weights(folder, content["weights"])
    try:
        origin = None if content["distilled"] is None else DistillationRecord.of(content["distilled"])
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
    names = content["labels"]
    check_label_names(folder, labels, names)
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
