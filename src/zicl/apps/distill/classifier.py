"""DistilledClassifier: a linear model over an encoder's vectors, as a scikit-learn classifier and as a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, FiniteFloat
from sklearn.utils.validation import check_is_fitted

from zicl._util.locks import note_finished
from zicl._util.process import __version__
from zicl._util.progress import Progress
from zicl._util.schema import Count, Entries, Sha256, Strict
from zicl.apps.distill.agreement import Agreement
from zicl.classifier import TextClassifier, binary_difference
from zicl.exceptions import ConfigError, EncoderMismatchError
from zicl.inputs.pair import Text
from zicl.inputs.texts import check_texts
from zicl.persistence import (
    CLASSIFIER,
    FORMAT,
    check_label_names,
    encoder_content,
    find_encoder,
    read_content,
    read_linear,
    read_saved_labels,
    write_folder,
    write_linear,
)
from zicl.prompt.labels import Labels
from zicl.prompt.template import Template, get_template
from zicl.retrieve.embedding import encode_in_chunks
from zicl.retrieve.encoder import Encoder, load_encoder
from zicl.score.calibration import Scores, log_softmax
from zicl.score.manifest import ModelEntry
from zicl.score.pile import Linear

_WEIGHTS = "weights.safetensors"


@dataclass(frozen=True)
class DistilledPrediction:
    """One classified text, with probabilities in the order of the labels.

    >>> prediction = DistilledPrediction("It rained.", {"dull": 0.7, "fine": 0.3})
    >>> prediction.label, round(prediction.margin, 3)
    ('dull', 0.4)
    """

    text: Text
    probabilities: Mapping[str, float]

    @cached_property
    def label(self) -> str:
        """Return the label with the highest probability."""
        return max(self.probabilities, key=lambda name: self.probabilities[name])

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the label as the only one."""
        return (self.label,)

    def top(self, count: int) -> list[tuple[str, float]]:
        """Return the likeliest labels with their probabilities, the likeliest first."""
        return sorted(self.probabilities.items(), key=lambda item: -item[1])[:count]

    @cached_property
    def margin(self) -> float:
        """Return the difference between the two highest probabilities."""
        first, second = sorted(self.probabilities.values(), reverse=True)[:2]
        return first - second


@dataclass(frozen=True)
class DistillationRecord:
    """How a classifier was distilled; saved with it.

    ``lm`` is the name of the teacher's language model, ``teacher`` the teacher's fingerprint. Of ``texts`` texts,
    ``distinct`` are different and ``sample`` were classified by the teacher; ``trained`` of these were trained on, with
    scikit-learn's C at ``strength``, the best of ``losses``. The rest of the sample is what ``agreement`` was measured
    on.
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
        """Return plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DistillationRecord:
        """Return what ``to_dict`` wrote."""
        losses = tuple((float(strength), float(loss)) for strength, loss in values["losses"])
        return cls(**{**values, "losses": losses, "agreement": Agreement.from_dict(values["agreement"])})


class LabelAgreementEntry(Strict):
    """How well the teacher is repeated on one label."""

    model_config = ConfigDict(extra="forbid")

    label: str
    rows: Count
    given: Count
    agreement: FiniteFloat | None
    divergence: FiniteFloat | None


class AgreementEntry(Strict):
    """How well the teacher is repeated."""

    model_config = ConfigDict(extra="forbid")

    rows: Count
    value: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    most: str
    majority: FiniteFloat
    log_loss: FiniteFloat
    divergence: FiniteFloat
    labels: Entries[LabelAgreementEntry]


class TeacherPromptEntry(Strict):
    """The part of the teacher's settings that is used: whether its texts were pairs."""

    model_config = ConfigDict(extra="allow")

    template: str | Annotated[list[str], Field(min_length=2, max_length=2)]


class TeacherEntry(Strict):
    """The teacher's fingerprint: all of it is kept, and of it only the template is used."""

    model_config = ConfigDict(extra="allow")

    prompt: TeacherPromptEntry


class RecordEntry(Strict):
    """How the classifier was distilled."""

    model_config = ConfigDict(extra="forbid")

    lm: str
    teacher: TeacherEntry
    texts: Count
    distinct: Count
    sample: Count
    trained: Count
    strength: FiniteFloat
    losses: Entries[Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]]
    agreement: AgreementEntry


class DistilledContent(Strict):
    """What ``classifier.json`` holds, for a distilled classifier."""

    labels: Entries[str] = Field(min_length=2)
    encoder: ModelEntry
    weights: Sha256
    distilled: RecordEntry | None


class DistilledClassifier(TextClassifier):
    """A linear model over an encoder's vectors that was trained on a language model's predictions.

    ``zicl.distill`` makes one and ``zicl.load`` loads one. ``fit`` trains nothing: it only checks.

    Parameters
    ----------
    linear : the weights, one row per label in the order of ``labels``
    labels : the labels
    encoder : the encoder of the texts
    origin : how it was distilled, and how well it repeats its teacher

    Attributes
    ----------
    classes_ : label names, sorted, the order of all columns
    labels_ : the labels

    Texts are encoded in batches, which may change the last digits of a vector: a probability depends on the other
    texts of the batch by less than 1e-4.

    """

    def __init__(
        self, linear: Linear, labels: Labels, encoder: Encoder, origin: DistillationRecord | None = None
    ) -> None:
        self.linear = linear
        self.labels = labels
        self.encoder = encoder
        self.origin = origin

    def fit(self, X: Iterable[Any] | None = None, y: Iterable[str] | None = None) -> DistilledClassifier:
        """Check that weights, labels and encoder match; ``X`` and ``y`` are not used."""
        expected = (len(self.labels), self.encoder.dimension)
        if self.linear.weights.shape != expected or self.linear.offsets.shape != expected[:1]:
            raise ConfigError(
                f"the weights are for (labels, dimensions) of {self.linear.weights.shape}, not of {expected}",
                hint="give the labels and the encoder it was distilled with",
            )
        self.labels_ = self.labels
        self.classes_ = np.array(sorted(self.labels.names), dtype=object)
        return self

    @property
    def of_pairs(self) -> bool | None:
        """Return whether it was trained on pairs of texts; None if its origin is unknown."""
        if self.origin is None:
            return None
        template = self.origin.teacher["prompt"]["template"]
        if template == "auto":
            # It chooses templates of single texts.
            return False
        return (get_template(template) if isinstance(template, str) else Template(*template)).two_fields

    def classify(self, X: Iterable[Any], progress: Progress | None = None) -> list[DistilledPrediction]:
        """Return predictions with probabilities and margins, in the order of ``X``."""
        texts, names = check_texts(X), self.labels.names
        probabilities = np.exp(log_softmax(self._scores(texts, progress)))
        return [
            DistilledPrediction(text.strip(), dict(zip(names, row, strict=True)))
            for text, row in zip(texts, probabilities.tolist(), strict=True)
        ]

    def decision_function(self, X: Iterable[Any]) -> NDArray[np.float64]:
        """Return the scores, one column per class; for binary problems ``score[1] - score[0]``."""
        return binary_difference(self._columns(self._scores(check_texts(X))))

    def predict_proba(self, X: Iterable[Any]) -> NDArray[np.float64]:
        """Return the softmax of the scores, one column per class."""
        return self._columns(np.exp(log_softmax(self._scores(check_texts(X)))))

    def predict(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """Return the label with the highest score."""
        best = self._scores(check_texts(X)).argmax(axis=1)
        return np.array([self.labels.names[int(n)] for n in best], dtype=object)

    def _scores(self, texts: list[Text], progress: Progress | None = None) -> Scores:
        """Return one column per label, in the order of the labels."""
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
        """Return all that predictions depend on as plain values: equal ones give equal predictions."""
        return {
            "labels": self.labels.to_toml(),
            "distilled": self.linear.identity,
            "encoder": self.encoder.identity,
        }

    def save(self, path: str | Path) -> Path:
        """Write a small folder that ``zicl.load`` and ``zicl classify --with`` take."""
        check_is_fitted(self, "classes_")
        return save_distilled(self, path)


def save_distilled(
    classifier: DistilledClassifier, path: str | Path, *, overwrite: bool = False, work: Path | None = None
) -> Path:
    """Write a classifier to a new folder; one that holds exactly the same is left as it is.

    ``work`` is the locked folder it was made in, which is of no more use afterwards.
    """
    folder, linear, encoder, origin = Path(path), classifier.linear, classifier.encoder, classifier.origin
    content = {
        "format": FORMAT,
        "kind": "distilled",
        "zicl": __version__,
        "encoder": encoder_content(folder, encoder.name, encoder.identity),
        "weights": linear.identity,
        # Rows of weights belong to labels by position.
        "labels": list(classifier.labels_.names),
        "distilled": None if origin is None else origin.to_dict(),
    }

    def add_weights(target: Path) -> None:
        write_linear(linear, target / _WEIGHTS)
        if work is not None:
            note_finished(work, target / CLASSIFIER)

    return write_folder(folder, content, classifier.labels_.to_toml(), add=add_weights, overwrite=overwrite)


def load_distilled(folder: Path, *, encoder: str | Encoder | None = None, offline: bool = False) -> DistilledClassifier:
    """Load the classifier of a folder; ``encoder`` replaces the saved one."""
    content = read_content(folder, DistilledContent)
    linear = read_linear(folder / _WEIGHTS, content.weights, len(content.labels))
    origin = None if content.distilled is None else DistillationRecord.from_dict(content.distilled.model_dump())
    saved = content.encoder
    if encoder is None:
        encoder = find_encoder(folder, saved)
    if isinstance(encoder, str):
        encoder = load_encoder(encoder, offline=offline)
    if encoder.identity != saved.identity:
        raise EncoderMismatchError(
            f"the encoder {encoder.name} is not the one {folder.name} was distilled with, {saved.name}",
            hint="its weights or tokenizer changed: get the old ones, or distil again",
        )
    labels = read_saved_labels(folder)
    check_label_names(folder, labels, content.labels)
    labels = Labels(tuple(labels[name] for name in content.labels))
    return DistilledClassifier(linear, labels, encoder, origin).fit()
