"""A sign: a number read off unlabelled texts, with what it usually means and the option that addresses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from zicl.score.calibration import Scores, log_prior, log_softmax

Level = Literal["good", "look", "warn"]


@dataclass(frozen=True)
class Signal:
    """One sign. ``level`` says whether it is as one would wish, worth a look, or a warning."""

    name: str
    value: float
    level: Level
    meaning: str
    option: str


@dataclass(frozen=True)
class Bounds:
    """Beyond ``look`` a value is worth a look, beyond ``warn`` it is a warning; which way is worse, their order says.

    >>> Bounds(look=0.1, warn=0.3).level(0.2), Bounds(look=0.9, warn=0.7).level(0.2)
    ('look', 'warn')
    """

    look: float
    warn: float

    def level(self, value: float) -> Level:
        """A value on a bound is still on its better side."""
        sign = 1 if self.warn > self.look else -1
        if sign * value > sign * self.warn:
            return "warn"
        return "look" if sign * value > sign * self.look else "good"

    def signal(self, name: str, value: float, *, good: str, bad: str, option: str) -> Signal:
        """The sign with this value; what it means depends on whether it is good."""
        level = self.level(value)
        return Signal(name, value, level, good if level == "good" else bad, option)


# -- The signs, each a pure function of numbers that were read off the texts. None of them knows a true label.


# Measured by benchmarks/similarity.py with the default encoder, 60 texts of each of six tasks on 3,000 sentences of
# each of six kinds of text: on a corpus of their own kind texts have a median of 0.41 to 0.59, on court opinions 0.26
# to 0.30, on other foreign kinds 0.30 to 0.47. A larger corpus comes nearer, and other encoders have other scales.
SIMILARITY = Bounds(look=0.4, warn=0.34)

# The cosine below which a text counts as far. In the same measurement 0 to 0.23 of the texts were so on a corpus of
# their own kind, and 0.82 to 0.97 on court opinions.
NEAR = 0.35
FAR = Bounds(look=0.2, warn=0.5)

# A demonstration is lost to the next nearest sentence wherever one stands alone. Where that is half of them, those that
# are shown come from twice as far down the list, and from the kinds of text that have long paragraphs.
ALONE = Bounds(look=0.25, warn=0.5)

# Of the entropy of equal shares. With two labels these are 68 to 32 and 81 to 19: the first happens in a sample of 40
# from even texts about once in sixty times, the second next to never.
EVENNESS = Bounds(look=0.9, warn=0.7)

# How far the largest share is on its way from an equal share (0) to all (1), so that it means the same for any number
# of labels. With two labels the same 68 and 81 in a hundred as above.
LEAD = Bounds(look=0.36, warn=0.62)

# The labels of the demonstrations are drawn at random, so nothing but chance lies between two seeds. One text in ten is
# about what near ties explain; at one in four a single draw decides too much.
SEEDS = Bounds(look=0.9, warn=0.75)

# Two inferences read the text in different ways and may differ on hard ones. Below 0.6, two labels are hardly above the
# half that coins would give.
INFERENCES = Bounds(look=0.8, warn=0.6)

# A few long texts are no loss: the beginning often says it. Where every fourth is cut, the limit is part of the answer.
CUT = Bounds(look=0.05, warn=0.25)

# The farthest are dropped first, so the first ones are no loss either.
DROPPED = Bounds(look=0.05, warn=0.25)

# The margin below which a text counts as close, and how many of them a person could still look at.
MARGIN = 0.1
CLOSE = Bounds(look=0.15, warn=0.4)

_NEARER = "a corpus of text like yours: zicl corpus build -o like.zicl FILES, or ZICLClassifier.from_texts in Python"
_EVEN = "--calibrate batch, if the labels should come about equally often; else it may do harm"


def similarity(nearest: Sequence[float]) -> Signal:
    """The median cosine of the texts' nearest sentences."""
    return SIMILARITY.signal(
        "similarity to the corpus",
        float(np.median(nearest)),
        good="The corpus holds sentences like the texts.",
        bad="The corpus is about other things, or written in another way: demonstrations tell the model little.",
        option=_NEARER,
    )


def far(nearest: Sequence[float]) -> Signal:
    """The share of texts whose nearest sentence is no nearer than ``NEAR``."""
    return FAR.signal(
        "texts far from the corpus",
        float(np.mean(np.asarray(nearest) < NEAR)),
        good="Hardly a text is without a sentence like it in the corpus.",
        bad=f"For these texts no sentence of the corpus has a cosine of {NEAR:g}: a kind of text is missing in it.",
        option=_NEARER,
    )


def alone(flags: Sequence[bool]) -> Signal:
    """The share of nearest sentences without a physical neighbour."""
    return ALONE.signal(
        "nearest sentences that stand alone",
        float(np.mean(flags)),
        good="Nearly all nearest sentences have a neighbour to show.",
        bad="Paragraphs of one sentence have no neighbour to show, so sentences from farther away take their place.",
        option="--retrieval diverse, or a corpus of text in longer paragraphs",
    )


def evenness(scores: Scores, inference: str) -> Signal:
    """The entropy of the labels' mean probabilities, as a share of the largest there can be."""
    prior = log_prior(scores)
    value = -float(np.sum(np.exp(prior) * prior)) / float(np.log(len(prior)))
    return EVENNESS.signal(
        f"evenness of the labels, {inference}",
        # Rounding alone may lead beyond the ends.
        min(max(value, 0.0), 1.0),
        good="All labels get about the same over the texts.",
        bad="Some labels get much more than others: the texts are so, or the model prefers these words for any text.",
        option=_EVEN,
    )


def largest(scores: Scores, names: Sequence[str], inference: str) -> Signal:
    """The largest of the labels' mean probabilities."""
    shares = np.exp(log_prior(scores))
    first, equal = int(np.argmax(shares)), 1 / len(shares)
    value = min(float(shares[first]), 1.0)
    level = LEAD.level((value - equal) / (1 - equal))
    told = f"{names[first]!r} gets most; an equal share would be {equal:.2f}."
    doubt = " The texts are so, or the model prefers it for any text."
    return Signal(
        f"largest share of a label, {inference}", value, level, told if level == "good" else told + doubt, _EVEN
    )


def agreement(passes: Sequence[Sequence[str]]) -> float:
    """The share of texts that get the same label in two passes: the mean over all pairs of passes.

    >>> agreement([["a", "a"], ["a", "b"]])
    0.5
    """
    rows = [np.asarray(labels, dtype=object) for labels in passes]
    return float(np.mean([np.mean(first == second) for first, second in combinations(rows, 2)]))


def seeds(passes: Sequence[Sequence[str]], drawn: Sequence[str]) -> Signal:
    """How often two seeds give a text the same label; ``drawn`` is what of the demonstrations they decide."""
    options = {
        "labels": "--set labelling.assignments=4 (four times the work)",
        "sentences": "a --retrieval that draws no sentences (physical, nearest)",
        "order": "--set retrieval.order=nearest-last",
    }
    return SEEDS.signal(
        "same label under another seed",
        agreement(passes),
        good=f"What is drawn for the demonstrations ({', '.join(drawn)}) hardly matters.",
        bad=f"What is drawn for the demonstrations ({', '.join(drawn)}) decides: another seed, other answers.",
        option=f"{options[drawn[0]]}, or --inference both",
    )


def inferences(passes: Sequence[Sequence[str]]) -> Signal:
    """How often channel and direct give a text the same label."""
    return INFERENCES.signal(
        "same label from channel and direct",
        agreement(passes),
        good="Both ways to ask the model say the same of most texts.",
        bad="At least one of the two is often wrong; if one of them has uneven labels, that may be why.",
        option="--inference both",
    )


def cut(flags: Sequence[bool]) -> Signal:
    """The share of texts that were cut."""
    return CUT.signal(
        "texts cut at the token limit",
        float(np.mean(flags)),
        good="The model reads nearly all texts to their end.",
        bad="The model does not see the end of these texts.",
        option="--set prompt.tokens_input=512 (more than the default 256), as far as the model's context allows",
    )


def dropped(kept: Sequence[int], lost: Sequence[int]) -> Signal:
    """The share of demonstrations that had no room in the prompt."""
    return DROPPED.signal(
        "demonstrations dropped",
        float(np.sum(lost) / max(np.sum(kept) + np.sum(lost), 1)),
        good="The demonstrations have room in the prompt.",
        bad="The farthest demonstrations have no room in the prompt: fewer are shown than were asked for.",
        option="a smaller --k, or --set prompt.tokens_all_demos=2048 where the model's context allows it",
    )


def close(scores: Scores) -> Signal:
    """The share of texts whose first probability is less than ``MARGIN`` above the second."""
    ordered = np.sort(np.exp(log_softmax(scores)), axis=1)
    return CLOSE.signal(
        "texts with a small margin",
        float(np.mean(ordered[:, -1] - ordered[:, -2] < MARGIN)),
        good=f"Few texts have a margin below {MARGIN:g}.",
        bad=f"On these texts two labels are nearly tied (a margin below {MARGIN:g}).",
        option=f"--review-below {MARGIN:g} leaves them to a person",
    )
