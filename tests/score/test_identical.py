"""The label beside the input itself: the correct one, or any of the others, each as often."""

from collections import Counter

import pytest

from zicl.exceptions import PromptError
from zicl.prompt.labels import Labels
from zicl.score.pipeline import check_kept, identical_label

LABELS = Labels.of(["bad", "okay", "good", "great"])


def test_a_wrong_label_is_drawn_uniformly_from_the_others():
    drawn = Counter(identical_label("okay", LABELS, 3, f"text {n}", correct=False).label for n in range(3000))
    assert set(drawn) == {"bad", "good", "great"}
    # Four standard deviations of a count with mean 1,000.
    assert all(abs(count - 1000) < 4 * (3000 * 2 / 9) ** 0.5 for count in drawn.values())


def test_the_draw_is_the_items_own_and_the_seeds():
    def label(seed, item):
        return identical_label("okay", LABELS, seed, item, correct=False).label

    assert [label(1, f"text {n}") for n in range(20)] == [label(1, f"text {n}") for n in range(20)]
    assert [label(1, f"text {n}") for n in range(20)] != [label(2, f"text {n}") for n in range(20)]
    assert {identical_label("okay", LABELS, seed, "text", correct=True).label for seed in range(9)} == {"okay"}


def test_without_room_it_is_an_error():
    with pytest.raises(PromptError, match="no room"):
        check_kept(None, [])
    with pytest.raises(PromptError, match="no room"):
        check_kept(2, [0, 1])
