"""The test input among its own demonstrations, to see how often the label beside it is copied."""

from __future__ import annotations

from collections.abc import Sequence

from zicl._util.random import rng
from zicl.corpus.store import Sentence
from zicl.exceptions import PromptError
from zicl.prompt.labelers import Drawn
from zicl.prompt.labels import Labels
from zicl.score.results import Shown

# What such a demonstration goes by in the place of a row of the corpus or a training example's name.
INPUT_ITSELF = "(the input itself)"


def shown_label(gold: str, labels: Labels, seed: int, item: str, *, correct: bool) -> Drawn:
    """The correct label, or one drawn uniformly from the others.

    >>> shown_label("great", Labels.of(["terrible", "great"]), 0, "A gem.", correct=False).words
    'terrible'
    """
    others = [name for name in labels.names if name != gold]
    name = gold if correct else others[int(rng(seed, item, "identical label").integers(len(others)))]
    return Drawn(name, labels[name].words)


def put_among(
    shown: Sequence[Shown], kept: Sequence[int], text: str, label: Drawn, seed: int
) -> tuple[list[Shown], int]:
    """The demonstrations with the text in the place of a random one that was kept, and the number of that place."""
    check_kept(next(iter(kept), None), kept)
    place = sorted(kept)[int(rng(seed, text, "identical place").integers(len(kept)))]
    itself = Shown(Sentence(-1, text, -1, 0, "", INPUT_ITSELF), None, None, label.label, label.words)
    return [itself if number == place else other for number, other in enumerate(shown)], place


def check_kept(place: int | None, kept: Sequence[int]) -> None:
    """The prompt has room for the input among its demonstrations."""
    if place is None or place not in kept:
        raise PromptError(
            "the input cannot stand among its own demonstrations: the prompt has no room for it",
            hint="raise prompt.tokens_all_demos",
        )
