"""Experts that need no language model: they compare a text's vector with what each label means.

A language model's expert is a ``Pipeline``. Every expert gives a log-score per label and says what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from zicl.inputs.pair import Text
from zicl.prompt.labels import Label, Labels
from zicl.score.calibration import Scores

Vectors = NDArray[np.float32]

# Cosines lie close together: the scale that sentence encoders are trained with turns them into log-scores.
SCALE = 20.0
# A label's words and its synonyms are compared in several phrases each, because no single one suits every task.
PHRASES = ("{}", "This is {}.", "It was {}.", "A text that is {}.", "The topic is {}.")
# How much of a label's similarity to sentences without content is its bias: they are neutral in tone, and so too close
# to labels that mean just that. Chosen with the phrases above: benchmarks/beyond.py choose.
BIAS_SHARE = 1 / 3


@lru_cache(maxsize=1)
def neutral_sentences() -> tuple[str, ...]:
    """Return sentences without content: what a label gets for them, it gets for any text."""
    lines = files("zicl").joinpath("data/neutral.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line)


def _reads_all(_text: str) -> bool:
    return False


@dataclass(frozen=True)
class EncoderExpert:
    """Score labels by the cosine of a text's vector to a vector of each label.

    With ``plain``, that is the vector of the label's description, or of its words without one. Otherwise it is the mean
    of the vectors of its description and of its words and synonyms in several phrases, and a share of what the label
    gets for sentences without content is subtracted. ``identity`` is the encoder's, ``encoder`` its name, and
    ``cuts`` says whether it reads only the beginning of a text. ``known`` holds the vectors of the texts that a pile
    was learned from: these are not encoded again.
    """

    embed: Callable[[Sequence[Text]], Vectors]
    identity: str
    encoder: str
    plain: bool = False
    cuts: Callable[[str], bool] = field(default=_reads_all, compare=False, repr=False)
    known: Mapping[Text, Vectors] = field(default_factory=dict, compare=False, repr=False)
    _cache: dict[Labels, tuple[Vectors, Scores]] = field(default_factory=dict, compare=False, repr=False)
    _centred: dict[Labels, tuple[Vectors, Vectors]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The expert's name in ``scoring.experts``."""
        return "cosine" if self.plain else "encoder"

    @property
    def cost(self) -> str:
        """What a text costs."""
        return f"one encoding by {self.encoder}"

    def text_vectors(self, texts: Sequence[Text]) -> Vectors:
        """Return one vector per text; those that are not known are embedded together."""
        vectors = self.known_vectors(texts)
        if not vectors:
            return self.embed(texts)
        if new := [text for text in texts if text not in vectors]:
            vectors |= zip(new, self.embed(new), strict=True)
        return np.stack([vectors[text] for text in texts])

    def known_vectors(self, texts: Iterable[Text]) -> dict[Text, Vectors]:
        """Return the vectors of those texts that are known."""
        return {text: self.known[text] for text in texts if text in self.known}

    def scores(self, vectors: Vectors, labels: Labels) -> Scores:
        """Return one row per vector and one column per label."""
        targets, bias = self.label_vectors(labels)
        return SCALE * ((vectors @ targets.T).astype(np.float64) - bias)

    def closeness(self, vectors: Vectors, labels: Labels) -> Scores:
        """Return how close each text is to the label nearest to it: a cosine, without what all texts have in common."""
        center, targets = self.centred(labels)
        closeness: Scores = (_directions(vectors - center) @ targets.T).astype(np.float64).max(axis=1)
        return closeness

    def centred(self, labels: Labels) -> tuple[Vectors, Vectors]:
        """Return what texts have in common, the mean of sentences without content, and each label's direction."""
        if labels not in self._centred:
            center = self.embed(neutral_sentences()).mean(axis=0)
            targets = self.embed([label.description or label.words for label in labels])
            self._centred[labels] = center, _directions(targets - center)
        return self._centred[labels]

    def nearest_words(self, vector: Vectors, labels: Labels) -> dict[str, list[tuple[str, float]]]:
        """Return the cosine of a text to each description, word and synonym of each label, the nearest first."""
        found = dict[str, list[tuple[str, float]]]()
        for label, parts in zip(labels, self._part_vectors(labels), strict=True):
            cosines = ((words, float(part @ vector / np.linalg.norm(part))) for words, part in parts)
            found[label.name] = sorted(cosines, key=lambda each: -each[1])
        return found

    def label_vectors(self, labels: Labels) -> tuple[Vectors, Scores]:
        """Return a unit vector per label, and what to subtract from its cosines."""
        if labels.counted:
            # Options that differ from text to text are not seen again: caching them all would fill the memory.
            return self._embed_labels(labels)
        if labels not in self._cache:
            self._cache[labels] = self._embed_labels(labels)
        return self._cache[labels]

    def _embed_labels(self, labels: Labels) -> tuple[Vectors, Scores]:
        if self.plain or labels.counted:
            return self.embed([label.description or label.words for label in labels]), np.zeros(len(labels))
        # A label is the mean over its description and each of its words; the phrases of a word count as one.
        means = np.stack([np.mean([part for _, part in parts], axis=0) for parts in self._part_vectors(labels)])
        targets: Vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
        bias = (self.embed(neutral_sentences()) @ targets.T).astype(np.float64).mean(axis=0)
        return targets, BIAS_SHARE * bias

    def _part_vectors(self, labels: Labels) -> list[list[tuple[str, Vectors]]]:
        """Return, for each label, its description and each of its words and synonyms with the mean of their phrases."""
        groups = [_phrases(label) for label in labels]
        # Together: many labels make many short phrases.
        every = [phrase for group in groups for _, phrases in group for phrase in phrases]
        vectors = dict(zip(every, self.embed(every), strict=True))
        return [
            [(words, np.mean([vectors[phrase] for phrase in phrases], axis=0)) for words, phrases in group]
            for group in groups
        ]


def _phrases(label: Label) -> list[tuple[str, list[str]]]:
    """Return the description of a label and each of its words and synonyms, with the phrases that stand for it."""
    described = [(label.description, [label.description])] if label.description else []
    words = dict.fromkeys((label.words, *label.synonyms))
    return described + [(word, [phrase.format(word) for phrase in PHRASES]) for word in words]


def _directions(vectors: Vectors) -> Vectors:
    """Return unit vectors; one of no length has no direction and stays."""
    scaled: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return scaled
