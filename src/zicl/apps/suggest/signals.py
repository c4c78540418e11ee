"""Diagnostic signals: numbers computed without labels, with their usual meaning and the option that addresses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from zicl.prompt.labels import Labels
from zicl.score.calibration import Scores, log_prior, log_softmax

Level = Literal["good", "look", "warn"]


@dataclass(frozen=True)
class Signal:
    """One diagnostic value: ``level`` is good, worth a look, or a warning; ``option`` addresses it."""

    name: str
    value: float
    level: Level
    meaning: str
    option: str


@dataclass(frozen=True)
class Bounds:
    """Beyond ``look`` a value is worth a look, beyond ``warn`` it is a warning. Higher is worse if warn > look.

    >>> Bounds(look=0.1, warn=0.3).level(0.2), Bounds(look=0.9, warn=0.7).level(0.2)
    ('look', 'warn')
    """

    look: float
    warn: float

    def level(self, value: float) -> Level:
        """Return the level of a value; a value on a bound counts as the better one."""
        sign = 1 if self.warn > self.look else -1
        if sign * value > sign * self.warn:
            return "warn"
        return "look" if sign * value > sign * self.look else "good"

    def signal(self, name: str, value: float, *, good: str, bad: str, option: str) -> Signal:
        """Return the signal with this value; its meaning depends on whether the level is good."""
        level = self.level(value)
        return Signal(name, value, level, good if level == "good" else bad, option)


# Measured by benchmarks/similarity.py with the default encoder, bge-small-en-v1.5, 60 texts of each of six tasks on
# 3,000 sentences of each of six kinds of text: on a corpus of the same kind texts have a median of 0.63 to 0.77, on
# court opinions 0.58 to 0.62, on other kinds 0.57 to 0.71. Larger corpora have higher similarities, and other encoders
# have other scales: with all-MiniLM-L6-v2 all of these are lower by 0.2 and more.
SIMILARITY = Bounds(look=0.63, warn=0.6)

# The cosine below which a text counts as far. In the same measurement a proportion of 0 to 0.22 of the texts was far
# from a corpus of the same kind, and 0.22 to 0.65 from court opinions.
NEAR = 0.6
FAR = Bounds(look=0.2, warn=0.5)

# A sentence without a neighbour is skipped for the next nearest one. If half of them are skipped, demonstrations come
# from twice as far down the list, and from the kinds of text that have long paragraphs.
WITHOUT_NEIGHBOUR = Bounds(look=0.25, warn=0.5)

# Relative to the entropy of equal shares. With two labels the bounds are 68 to 32 and 81 to 19: in a sample of 40 from
# evenly distributed texts the first happens about once in sixty times, the second almost never.
EVENNESS = Bounds(look=0.9, warn=0.7)

# The largest share, rescaled so that an equal share is 0 and all is 1, to mean the same for any number of labels. With
# two labels the bounds are the same 68 and 81 per cent as above.
LEAD = Bounds(look=0.36, warn=0.62)

# The labels of the demonstrations are random, so two seeds differ by chance alone. Near ties explain about one text in
# ten; at one in four a single draw decides too much.
SEED_AGREEMENT = Bounds(look=0.9, warn=0.75)

# Two inferences read the text in different ways and may differ on hard ones. Below 0.6, two labels are hardly above the
# 0.5 of chance.
INFERENCE_AGREEMENT = Bounds(look=0.8, warn=0.6)

# A few cut texts are no loss: the beginning is often enough. If every fourth is cut, the limit affects the results.
CUT = Bounds(look=0.05, warn=0.25)

# The farthest are dropped first, so a few are no loss either.
DROPPED = Bounds(look=0.05, warn=0.25)

# The margin below which two labels count as nearly tied, and how many such texts a person could still review.
MARGIN = 0.1
SMALL_MARGINS = Bounds(look=0.15, warn=0.4)

# The share of texts on which models of two halves of the pile agree: below the second bound the pile hardly counts.
# Where texts of a label are alike (news by topic, reviews by tone) it was 0.82 to 0.99, for tweets 0.75 to 0.85, for
# vectors drawn at random 0.69 to 0.78.
STABILITY = Bounds(look=0.85, warn=0.75)

UNDESCRIBED = Bounds(look=0.0, warn=1.0)

_BETTER_CORPUS = (
    "a corpus of text like yours: zicl corpus build -o like.zicl FILES, or ZICLClassifier.from_texts in Python"
)
_CALIBRATE = "--calibrate batch, if the labels should be about equally frequent; else it may do harm"
_SHARES = "--shares great=0.5,terrible=0.5, if you know the shares; descriptions of the labels; rows checked by hand"


def _share_option(expert: str) -> str:
    return _SHARES if expert == "encoder" else _CALIBRATE


def corpus_similarity(nearest: Sequence[float]) -> Signal:
    """Return the median cosine of the texts' nearest sentences."""
    return SIMILARITY.signal(
        "similarity to the corpus",
        float(np.median(nearest)),
        good="The corpus holds sentences like the texts.",
        bad="The corpus has other subjects or another style: demonstrations help the model little.",
        option=_BETTER_CORPUS,
    )


def far_texts(nearest: Sequence[float]) -> Signal:
    """Return the proportion of texts whose nearest sentence has a cosine below ``NEAR``."""
    return FAR.signal(
        "texts far from the corpus",
        float(np.mean(np.asarray(nearest) < NEAR)),
        good="For nearly all texts the corpus holds a similar sentence.",
        bad=f"For these texts no sentence of the corpus has a cosine of {NEAR:g}: a kind of text is missing in it.",
        option=_BETTER_CORPUS,
    )


def without_neighbour(flags: Sequence[bool]) -> Signal:
    """Return the proportion of nearest sentences without a physical neighbour."""
    return WITHOUT_NEIGHBOUR.signal(
        "nearest sentences that stand alone",
        float(np.mean(flags)),
        good="Nearly all nearest sentences have a neighbour to show.",
        bad="Paragraphs of one sentence have no neighbour to show, so sentences from farther away take their place.",
        option="--set retrieval.method=diverse, or a corpus of text in longer paragraphs",
    )


def evenness(scores: Scores, inference: str) -> Signal:
    """Return the entropy of the labels' mean probabilities, relative to the maximum."""
    prior = log_prior(scores)
    value = -float(np.sum(np.exp(prior) * prior)) / float(np.log(len(prior)))
    return EVENNESS.signal(
        f"evenness of the labels, {inference}",
        # Rounding may lead beyond the range.
        min(max(value, 0.0), 1.0),
        good="All labels are about equally frequent.",
        bad="Some labels are much more frequent: in the texts too, or the model prefers their words for any text.",
        option=_share_option(inference),
    )


def largest_share(scores: Scores, names: Sequence[str], inference: str) -> Signal:
    """Return the largest of the labels' mean probabilities."""
    shares = np.exp(log_prior(scores))
    first, equal = int(np.argmax(shares)), 1 / len(shares)
    value = min(float(shares[first]), 1.0)
    level = LEAD.level((value - equal) / (1 - equal))
    meaning = f"{names[first]!r} is the most frequent label; an equal share would be {equal:.2f}."
    if level != "good":
        meaning += " It is frequent in the texts too, or the model prefers it for any text."
    return Signal(f"largest share of a label, {inference}", value, level, meaning, _share_option(inference))


def agreement(passes: Sequence[Sequence[str]]) -> float:
    """Return the proportion of texts with the same label in two passes, averaged over all pairs of passes.

    >>> agreement([["a", "a"], ["a", "b"]])
    0.5
    """
    rows = [np.asarray(labels, dtype=object) for labels in passes]
    return float(np.mean([np.mean(first == second) for first, second in combinations(rows, 2)]))


def seed_agreement(passes: Sequence[Sequence[str]], drawn: Sequence[str]) -> Signal:
    """Return how often two seeds give a text the same label; ``drawn`` names what the seed decides."""
    options = {
        "labels": "--set labelling.assignments=4 (four times the work)",
        "sentences": "--set retrieval.method=physical (or nearest), which draws no sentences",
        "order": "--set retrieval.order=nearest-last",
    }
    return SEED_AGREEMENT.signal(
        "same label under another seed",
        agreement(passes),
        good=f"The random parts of the demonstrations ({', '.join(drawn)}) hardly matter.",
        bad=f"The random parts of the demonstrations ({', '.join(drawn)}) decide: other seeds give other labels.",
        option=f"{options[drawn[0]]}, or --inference both",
    )


def inference_agreement(passes: Sequence[Sequence[str]]) -> Signal:
    """Return how often channel and direct give a text the same label."""
    return INFERENCE_AGREEMENT.signal(
        "same label from channel and direct",
        agreement(passes),
        good="Both inferences give most texts the same label.",
        bad="At least one of the two is often wrong; if one of them has uneven labels, that may be why.",
        option="--inference both",
    )


def cut_texts(flags: Sequence[bool]) -> Signal:
    """Return the proportion of texts that were cut."""
    return CUT.signal(
        "texts cut at the token limit",
        float(np.mean(flags)),
        good="The model reads nearly all texts to their end.",
        bad="The model does not see the end of these texts.",
        option="--set prompt.tokens_input=512 (more than the default 256), as far as the model's context allows",
    )


def dropped_demos(kept: Sequence[int], dropped: Sequence[int]) -> Signal:
    """Return the proportion of demonstrations that had no room in the prompt."""
    return DROPPED.signal(
        "demonstrations dropped",
        float(np.sum(dropped) / max(np.sum(kept) + np.sum(dropped), 1)),
        good="The demonstrations have room in the prompt.",
        bad="The farthest demonstrations have no room in the prompt: fewer are shown than requested.",
        option="a smaller --k, or --set prompt.tokens_all_demos=2048 where the model's context allows it",
    )


def small_margins(scores: Scores) -> Signal:
    """Return the proportion of texts with a margin below ``MARGIN``."""
    ordered = np.sort(np.exp(log_softmax(scores)), axis=1)
    return SMALL_MARGINS.signal(
        "texts with a small margin",
        float(np.mean(ordered[:, -1] - ordered[:, -2] < MARGIN)),
        good=f"Few texts have a margin below {MARGIN:g}.",
        bad=f"On these texts two labels are nearly tied (a margin below {MARGIN:g}).",
        option=f"--review-below {MARGIN:g} leaves them for review",
    )


def pile_stability(value: float) -> Signal:
    """Return the share of texts on which two halves of the pile agree."""
    return STABILITY.signal(
        "same label from two halves of the pile",
        value,
        good="Texts of one label are alike: the pile helps to tell the labels apart.",
        bad="The labels are not what makes these texts alike: the pile counts little, and the encoder decides.",
        option="a description of each label, some rows labelled by hand (zicl check sample, --gold), or more texts",
    )


def undescribed_labels(labels: Labels) -> Signal:
    """Return the share of labels without a description."""
    return UNDESCRIBED.signal(
        "labels without a description",
        sum(not label.description for label in labels) / len(labels),
        good="Every label has a description.",
        bad="The encoder has only the words of these labels to go by.",
        option="a sentence for each in labels.toml: description = 'The customer wants the money back.'",
    )
