"""Make the map of labelled texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zicl._util.counts import counted
from zicl._util.files import write_text
from zicl._util.html import escape
from zicl._util.process import require_extra
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.apps.distill.classifier import DistilledClassifier, DistilledPrediction
from zicl.apps.map.layout import Layout, Points, choose_layout, different, find_outlying, lay_out
from zicl.apps.map.page import render_map
from zicl.classifier import ZICLClassifier
from zicl.exceptions import TextError
from zicl.inputs.pair import Text
from zicl.inputs.texts import check_texts
from zicl.lm.model_cache import cached_embedder, cached_encoder
from zicl.retrieve.encoder import Vectors
from zicl.retrieve.index import Index
from zicl.score.results import Prediction

# More points than these are a cloud; a sample shows the same.
MAX_POINTS = 20_000
# Longer texts are cut on the page; the data is the file that was labelled.
_CHARACTERS = 600
# From this margin on an answer counts as sure, until the reader moves the slider.
UNSURE = 0.1


@dataclass(frozen=True)
class LabelledText:
    """A text with its label, and what is known of the answer.

    ``margin`` and ``probability`` are those of the label; ``reasons`` are short lines that say where it comes from.
    """

    id: str
    text: Text
    label: str
    margin: float | None = None
    probability: float | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TextMap:
    """Labelled texts in two dimensions; ``save`` writes the page, and a notebook shows it by itself.

    ``total`` is the number of texts of which ``rows`` are a sample, or all. ``layout`` says how ``points`` were found.
    """

    rows: Sequence[LabelledText]
    points: Points
    outlying: Sequence[bool]
    layout: Layout
    total: int
    title: str = "A map of the texts"

    def to_html(self) -> str:
        """Return the page: one file, with everything in it."""
        return render_map(self.title, self._about(), self.data())

    def save(self, path: str | Path) -> Path:
        """Write the page."""
        write_text(Path(path), self.to_html())
        return Path(path)

    def data(self) -> dict[str, Any]:
        """Return what the page draws, column by column; labels are numbers, the most frequent is 0."""
        labels = [name for name, _ in Counter(row.label for row in self.rows).most_common()]
        numbers = {name: number for number, name in enumerate(labels)}
        return {
            "labels": labels,
            "x": [round(float(x), 4) for x in self.points[:, 0]],
            "y": [round(float(y), 4) for y in self.points[:, 1]],
            "id": [row.id for row in self.rows],
            "text": [_cut(str(row.text)) for row in self.rows],
            "label": [numbers[row.label] for row in self.rows],
            "margin": [None if row.margin is None else round(row.margin, 4) for row in self.rows],
            "probability": [None if row.probability is None else round(row.probability, 4) for row in self.rows],
            "reasons": [list(row.reasons) for row in self.rows],
            "outlying": [int(each) for each in self.outlying],
            "unsure": UNSURE,
        }

    def _about(self) -> str:
        layout = "neighbours in the picture are similar (t-SNE)"
        if self.layout == "pca":
            layout = "its directions are the two in which the texts differ most (PCA)"
        count = (
            f"{len(self.rows):,}"
            if len(self.rows) == self.total
            else f"A sample of {len(self.rows):,} of {self.total:,}"
        )
        return f"{count} texts; {layout}"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.to_html())}" style="width: 100%; height: 46rem; border: 0"></iframe>'


def make_map(
    rows: Sequence[LabelledText],
    embed: Callable[[Sequence[Text]], Vectors],
    *,
    layout: Layout = "auto",
    seed: int = 0,
    limit: int = MAX_POINTS,
    title: str = "",
    report: ProgressReport = silent,
) -> TextMap:
    """Lay labelled texts out by their vectors, which ``embed`` returns; of more than ``limit``, a sample is shown."""
    require_extra("map", "a map", "plotly")
    if len(rows) < 3:
        raise TextError(f"a map of {counted(len(rows), 'text')} shows nothing", hint="give at least three")
    chosen: Sequence[LabelledText] = rows
    if len(rows) > limit:
        chosen = [rows[int(n)] for n in sorted(rng(seed, "texts on the map").choice(len(rows), limit, replace=False))]
    texts, places = different([row.text.strip() for row in chosen])
    # Checked before anything is encoded.
    layout = choose_layout(layout, len(texts))
    vectors = embed(texts)
    report("drawing the map", 0, None)
    points, outlying = lay_out(vectors, layout, seed)[places], find_outlying(vectors[places])
    return TextMap(chosen, points, outlying.tolist(), layout, len(rows), title or counted(len(rows), "text"))


def map_texts(
    classifier: ZICLClassifier | DistilledClassifier,
    texts: Iterable[Any],
    *,
    layout: Layout = "auto",
    seed: int = 0,
    limit: int = MAX_POINTS,
    report: ProgressReport = silent,
) -> TextMap:
    """Label texts with a fitted classifier, and lay them out."""
    predictions: Sequence[Prediction | DistilledPrediction] = classifier.classify(check_texts(texts))
    rows = [labelled_text(str(number), each) for number, each in enumerate(predictions, start=1)]
    return make_map(rows, _embedder(classifier), layout=layout, seed=seed, limit=limit, report=report)


def labelled_text(row_id: str, prediction: Prediction | DistilledPrediction) -> LabelledText:
    """Return what the map shows of a prediction."""
    likely = prediction.probabilities
    terms = prediction.terms if isinstance(prediction, Prediction) else {}
    reasons = (_likeliest(likely), *(f"{name} says {_best(values, list(likely))}" for name, values in terms.items()))
    probability = likely.get(prediction.label)
    return LabelledText(row_id, prediction.text, prediction.label, prediction.margin, probability, reasons)


def _likeliest(probabilities: Mapping[str, float]) -> str:
    best = sorted(probabilities.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{name} {value:.0%}" for name, value in best)


def _best(values: Sequence[float], names: Sequence[str]) -> str:
    return names[int(np.argmax(values))]


def _embedder(classifier: ZICLClassifier | DistilledClassifier) -> Callable[[Sequence[Text]], Vectors]:
    """Return what embeds texts as the classifier does: what it has encoded is not encoded again."""
    if isinstance(classifier, DistilledClassifier):
        return cached_embedder(classifier.encoder)
    if (expert := classifier.ensemble_.encoder_expert) is not None:
        return expert.text_vectors
    if isinstance(classifier.index_, Index):
        return cached_embedder(classifier.index_.encoder)
    return cached_embedder(cached_encoder(classifier.encoder, classifier.offline))


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS].rstrip()} …"
