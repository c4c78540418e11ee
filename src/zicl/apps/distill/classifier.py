"""DistilledClassifier: a language model's answers at the encoder's speed, with scikit-learn's contract."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from zicl.apps.distill.answer import Answer
from zicl.apps.distill.embed import embedded
from zicl.apps.distill.linear import Linear
from zicl.apps.distill.origin import Origin
from zicl.estimator import TextClassifier, one_of_two
from zicl.exceptions import ConfigError
from zicl.inputs.texts import check_texts
from zicl.lm.base import Progress
from zicl.prompt.labels import Labels
from zicl.prompt.template import Template, get_template
from zicl.retrieve.encoder import Encoder
from zicl.score.calibration import Scores, log_softmax


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

    def __init__(self, linear: Linear, labels: Labels, encoder: Encoder, origin: Origin | None = None) -> None:
        self.linear = linear
        self.labels = labels
        self.encoder = encoder
        self.origin = origin

    def fit(self, X: Iterable[str] | None = None, y: Iterable[str] | None = None) -> DistilledClassifier:
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

    def classify(self, X: Iterable[str], progress: Progress | None = None) -> list[Answer]:
        """Labels with probabilities and margins, in the order of ``X``."""
        texts, names = check_texts(X), self.labels.names
        shares = np.exp(log_softmax(self._scores(texts, progress)))
        return [
            Answer(text.strip(), dict(zip(names, row, strict=True)))
            for text, row in zip(texts, shares.tolist(), strict=True)
        ]

    def decision_function(self, X: Iterable[str]) -> NDArray[np.float64]:
        """What is compared, a column a label in the order of ``classes_``; of two labels the second less the first."""
        return one_of_two(self._columns(self._scores(check_texts(X))))

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """The softmax of what is compared, a column a label in the order of ``classes_``."""
        return self._columns(np.exp(log_softmax(self._scores(check_texts(X)))))

    def predict(self, X: Iterable[str]) -> NDArray[np.object_]:
        """The label of the highest score."""
        best = self._scores(check_texts(X)).argmax(axis=1)
        return np.array([self.labels.names[int(n)] for n in best], dtype=object)

    def _scores(self, texts: list[str], progress: Progress | None = None) -> Scores:
        """One column a label, in the order of the labels."""
        check_is_fitted(self, "classes_")
        parts: list[Scores] = [np.empty((0, len(self.labels)))]
        for vectors in embedded(self.encoder, texts):
            parts.append(self.linear.scores(vectors))
            if progress is not None:
                progress(len(vectors))
        return np.concatenate(parts)

    def _columns(self, rows: Scores) -> NDArray[np.float64]:
        return rows[:, [self.labels.names.index(name) for name in self.classes_]]

    def depends_on(self) -> dict[str, Any]:
        """All that the answers depend on, as plain values."""
        return {
            "labels": self.labels.to_toml(),
            "distilled": self.linear.identity,
            "encoder": self.encoder.identity,
        }

    def save(self, path: str | Path) -> Path:
        """Write a small folder that ``zicl.load`` and ``zicl classify --with`` take."""
        from zicl.apps.distill.store import save

        check_is_fitted(self, "classes_")
        return save(self, path)
